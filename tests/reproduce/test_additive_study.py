"""The study of several biases: its worlds, methods and scores, on one log each."""

from __future__ import annotations

import numpy as np
import pytest

from elute.estimate.models.pbm import PBM
from elute_reproduce.additive import study
from elute_reproduce.additive.contexts import compare_contexts
from elute_reproduce.additive.methods import METHODS, score
from elute_reproduce.additive.world import ADDITIVE, DEVICES, KINDS, LAYOUTS, POSITIONS, build_world, tie


@pytest.mark.parametrize("kind", KINDS)
def test_worlds_are_what_they_are_called(kind: str) -> None:
    log_o = np.log(build_world(kind, 0).o).reshape(POSITIONS, DEVICES, LAYOUTS)
    corner = log_o[:1, :1, :1]
    main = log_o[:, :1, :1] + log_o[:1, :, :1] + log_o[:1, :1, :] - 2 * corner
    joint = log_o[:, :, :1] + log_o[:1, :1, :] - corner
    assert np.allclose(log_o, main) == (kind == "additive")
    assert np.allclose(log_o, joint) == (kind != "not additive")


def test_additive_is_nearest_in_an_additive_world() -> None:
    world = build_world("additive", 1)
    counts = world.draw(np.random.default_rng(1))
    found = {name: score(world, METHODS[name](counts)) for name in ("additive", "without layout", "no debias")}
    errors = {name: one["propensity error"] for name, one in found.items()}
    assert errors["additive"] < 0.1 < min(errors["without layout"], errors["no debias"])
    assert found["additive"]["pairs right"] > 0.85


def test_intervals_and_their_truth() -> None:
    world = build_world("additive", 2)
    fit = PBM(relevance_prior="none").fit(tie(world.draw(np.random.default_rng(2)), ADDITIVE))
    there, held = study._hold(world, fit)
    assert there.sum() == len(np.unique(world.factor)) - 1 and (held <= there).all() and held.sum() > 0.7 * there.sum()
    assert len(study._hold_effects(world, fit)) == POSITIONS + DEVICES + LAYOUTS - 3


def test_contexts_that_multiply_are_recovered() -> None:
    found = compare_contexts("contexts multiply", 150, 120, 0)
    assert found["additive"]["MCC"] > 0.95 > found["no debias"]["MCC"]
    assert found["additive"]["components"] <= found["merging"]["components"]

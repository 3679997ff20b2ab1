"""Twenty looks at a plan, a quick version of the study."""

from __future__ import annotations

import numpy as np
import pytest

from elute_reproduce.plans.fits import watch_plan
from elute_reproduce.plans.links import LinkWorld, watch_link
from elute_reproduce.plans.looks import LOOKS, PICKED, TASTES, WORLDS, judge, watch_worlds
from elute_reproduce.study import Study


def test_the_claims_hold_in_fewer_runs() -> None:
    found = watch_worlds(300)
    blind = watch_link(WORLDS[TASTES], 300, LOOKS, np.random.default_rng(5), with_clusters=False)
    picked = {name: watch_link(world, 300, LOOKS, np.random.default_rng(6)) for name, world in PICKED.items()}
    assert [claim.sentence for claim in judge(found, blind, picked) if not claim.holds] == []
    for looks in found.values():
        assert looks.stopped == 1.0
        assert looks.used == pytest.approx(2.4, abs=0.35)


def test_more_looks_do_not_make_more_errors() -> None:
    """Where there is nothing between looks to stop at, naive intervals are off in 5% of runs; the more looks, the more
    often. The sequence stays within 5% at 200."""
    world = LinkWorld(0.5, 0.25)
    few, many = (watch_link(world, 600, looks, np.random.default_rng(7)) for looks in (2, 200))
    assert few.naive_ever_out < 0.12 < 0.25 < many.naive_ever_out
    assert max(few.ever_out, many.ever_out) <= 0.05


@pytest.mark.parametrize("tastes", [0.0, 0.5])
def test_whole_fits_find_the_ratio(tastes: float) -> None:
    looks = watch_plan(Study(), 8, 6, seed=9, tastes=tastes)
    assert looks.ever_out <= 1 / 8  # two of eight would be rarer than 1 in 17 if 5% of runs were ever out
    assert looks.runs == 8

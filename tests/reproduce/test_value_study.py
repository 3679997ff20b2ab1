"""The study of values: its worlds click as they say, and a small run says all that the page does."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from elute_reproduce.study import Study
from elute_reproduce.value import study, worlds
from elute_reproduce.value.worlds import DOCS, PLACES, Truth, ValueWorld, count


@pytest.mark.parametrize("user", ["pbm", "trust", "dbn"])
def test_users_click_as_expected(user: Literal["pbm", "trust", "dbn"]) -> None:
    truth = Truth(ValueWorld(5, 100, False, True, user), 0)
    query = np.repeat(np.arange(5), 8_000)
    order = truth.ranking[query]
    clicks = truth.click(query, order, np.random.default_rng(3))
    for one in range(5):
        rate, p = clicks[query == one].mean(axis=0), truth.expect(np.array([one]), truth.ranking[[one]])[0]
        assert np.abs(rate - p).max() < 5 * np.sqrt(0.25 / 8_000)
    assert truth.new == pytest.approx(truth.expect(np.arange(5), truth.ranking).sum(axis=1))


def test_cells_hold_the_log() -> None:
    drawn = Truth(ValueWorld(5, 60, True, False), 1).draw(np.random.default_rng(0))
    counts, item, queries = count(drawn)
    assert counts.impressions.sum() == 60 * PLACES
    assert counts.clicks.sum() == drawn.clicks.sum()
    assert set(item // DOCS) == set(queries) == set(drawn.query)


def test_a_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: ValueWorld(20, 1_500, False, True, world.user, world.fit)
        for name, world in worlds.list_worlds().items()
        if name in ("very sparse, weak logging, large change", "DBN, fit of pbm, large change")
    }
    monkeypatch.setattr(study, "RUNS", 3)
    monkeypatch.setattr(study, "list_worlds", lambda: some)
    result = study.run(Study()).to_dict()
    assert {row["by"] for row in result["compared"]} >= {"truth", "snips", "model", "click rates", "replay"}
    assert len(result["claims"]) == 8

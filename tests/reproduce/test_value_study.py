"""The study of values: its worlds click as they say, and a small run says all that the page does."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from elute_reproduce.study import Study
from elute_reproduce.value import metrics, study, worlds
from elute_reproduce.value.worlds import DOCS, PLACES, DrawnLog, Truth, ValueWorld, count


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


def test_metrics_as_they_are() -> None:
    """The truth that the study of metrics compares with, on one page that can be worked out by hand."""
    truth = Truth(ValueWorld(1, 1, True, False), 0)
    truth.relevance[0] = np.arange(DOCS) / DOCS
    truth.ranking[0] = np.arange(PLACES)
    drawn = DrawnLog(np.array([0]), np.arange(DOCS)[None, ::-1][:, :PLACES], np.zeros((1, PLACES), np.bool_))
    new, logged = metrics.measure_truth(truth, *count(drawn), np.array([True]))
    r = np.arange(DOCS)[::-1][:PLACES] / DOCS
    dcg, look = sum(x / k for k, x in enumerate(r, 1)), 1 / np.arange(1, PLACES + 1)
    assert logged == pytest.approx([dcg, 1.0, 1 - np.prod(1 - r * look)])
    assert new[1] == pytest.approx(new[0] / dcg)


def test_a_small_run_of_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "RUNS", 2)
    monkeypatch.setattr(metrics, "SIZES", {"small": (20, 1_500)})
    result = metrics.run(Study()).to_dict()
    assert {row["metric"] for row in result["compared"]} == {"dcg", "ndcg", "success"}
    assert len({row["world"] for row in result["compared"]}) == 6 and len(result["claims"]) == 4

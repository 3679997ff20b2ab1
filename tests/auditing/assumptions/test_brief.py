"""The tests that a fit runs by itself: which, when, and that they are quick."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

import elute
from elute.auditing.assumptions import brief
from elute.auditing.assumptions.brief import assess_briefly
from elute.cells.counts import Counts


def make_counts(items: int, factors: int, offset: float = 0.0, n: int = 60, seed: int = 0) -> Counts:
    """Every item under every factor; clicks are r·o, plus an offset that fades down the page."""
    rng = np.random.default_rng(seed)
    item, factor = (grid.ravel() for grid in np.meshgrid(np.arange(items), np.arange(factors)))
    r, o = rng.uniform(0.05, 0.5, items), 1 / (1 + 0.3 * np.arange(factors))
    p = r[item] * o[factor] + offset * (factor == 0)
    table = pa.table({"doc_id": item, "position": factor, "n": np.full(len(item), n), "click": rng.binomial(n, p)})
    return elute.read_log(table, item="doc_id", impressions="n").counts()


def test_clicks_that_follow_the_model_are_seldom_rejected() -> None:
    """Three tests at level 0.05 on each of 20 logs: about 3 rejections."""
    found = [assess_briefly(make_counts(30, 4, seed=seed), "pbm") for seed in range(20)]
    assert all(each.run and not each.reason for each in found)
    assert sum(len(each.rejected) for each in found) <= 9


def test_trust_bias_is_rejected_for_models_that_exclude_it() -> None:
    counts = make_counts(100, 4, offset=0.3, n=2_000)
    assert {"examination", "linear"} <= set(assess_briefly(counts, "pbm").rejected)
    assert assess_briefly(counts, "affine") == (True, (), "")


def test_what_no_clicks_could_contradict_is_not_tested() -> None:
    """Two items that share no factor, and a log without clicks."""
    log = elute.read_log(pa.table({"doc_id": [1, 1, 2], "position": [1, 2, 3], "click": [1, 0, 1]}), item="doc_id")
    never = elute.read_log(pa.table({"doc_id": [1, 1, 2], "position": [1, 2, 1], "click": [0, 0, 0]}), item="doc_id")
    for each in (log, never):
        found = assess_briefly(each.counts(), "pbm")
        assert (found.run, found.rejected) == (False, ())
        assert found.reason == "this log cannot tell of examination, linear, affine"


@pytest.mark.parametrize(
    ("limit", "words"), [("CELLS", "40 cells, more than 3"), ("FACTORS", "4 factors, more than 3")]
)
def test_beyond_a_limit_nothing_is_run(limit: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief, limit, 3)
    found = assess_briefly(make_counts(10, 4), "pbm")
    assert not found.run
    assert words in found.reason


def test_at_the_limits_it_takes_seconds() -> None:
    """About one on an idle machine; the second time, when kernels are compiled."""
    counts = make_counts(brief.CELLS // brief.FACTORS, brief.FACTORS)
    for _ in range(2):
        began = time.perf_counter()
        assert assess_briefly(counts, "pbm").run
        seconds = time.perf_counter() - began
    assert seconds < 10

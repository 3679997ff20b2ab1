"""Held-out figures: the perplexity of the audit, intervals of a cluster bootstrap, and splits that share nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import elute
from elute.auditing.perplexity import perplexity
from elute.errors import EluteError
from elute.sessions.scores import compare, lose_bits, measure_mean, measure_perplexity
from elute.verbs.holdout import By

QUERIES = 60


def drawn(seed: int):
    """Pages of three, more alike within a query than between."""
    rng = np.random.default_rng(seed)
    query = np.sort(rng.integers(0, QUERIES, 900))
    truth = np.clip(rng.beta(2, 4, (QUERIES, 3))[query], 0.02, 0.98)
    return query, (rng.random(truth.shape) < truth).astype(int), rng


def measured(p: np.ndarray, clicks: np.ndarray, query: np.ndarray, queries: int = QUERIES):
    rank = np.tile(np.arange(3), len(p))
    return measure_perplexity(lose_bits(p.ravel(), clicks.ravel()), np.ones(p.size), rank, np.repeat(query, 3), queries)


def test_perplexity_is_that_of_the_audit() -> None:
    query, clicks, rng = drawn(0)
    p = rng.uniform(0.05, 0.95, clicks.shape)
    assert measured(p, clicks, query).estimate == pytest.approx(perplexity(p, clicks).mean, rel=1e-12)


def test_intervals_are_those_of_a_bootstrap_of_queries() -> None:
    query, clicks, rng = drawn(1)
    p = np.broadcast_to(clicks.mean(axis=0), clicks.shape)
    better = np.clip(p + 0.3 * (clicks - p) * rng.random(p.shape), 0.01, 0.99)
    rows = [np.flatnonzero(query == q) for q in range(QUERIES)]
    draws = []
    for _ in range(400):
        chosen = np.concatenate([rows[q] for q in rng.integers(0, QUERIES, QUERIES)])
        values = [perplexity(x[chosen], clicks[chosen]).mean for x in (p, better)]
        draws.append((values[0], values[1] - values[0]))
    error, of_difference = np.std(draws, axis=0)
    one, other = measured(better, clicks, query), measured(p, clicks, query)
    assert other.half_width == pytest.approx(2.0 * error, rel=0.2)
    found = compare(one, other)
    assert (found.high - found.low) / 2 == pytest.approx(2.0 * of_difference, rel=0.2)
    assert found.p_value < 1e-6


def test_a_model_cannot_be_told_from_itself() -> None:
    query, clicks, rng = drawn(2)
    one = measured(rng.uniform(0.1, 0.9, clicks.shape), clicks, query)
    assert compare(one, one) == (0.0, 0.0, 0.0, 1.0)
    values = rng.normal(size=len(query))
    assert measure_mean(values, query, QUERIES).estimate == pytest.approx(values.mean())
    alone = measure_mean(values, np.zeros(len(values), np.int64), 1)
    assert alone.to_dict()["low"] is None


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    query, clicks, rng = drawn(3)
    rows = {
        "session_id": np.repeat(np.arange(len(query)), 3),
        "query_id": np.repeat(query, 3).astype(str),
        "doc_id": rng.permuted(np.tile(["a", "b", "c"], (len(query), 1)), axis=1).ravel(),
        "position": np.tile([1, 2, 3], len(query)),
        "click": clicks.ravel(),
        "timestamp": np.repeat(np.arange(len(query)), 3),
    }
    path = tmp_path_factory.mktemp("holdout") / "log.parquet"
    pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize("by", ["session", "query", "time"])
def test_a_holdout_is_predicted_and_not_fitted(log: Path, by: By) -> None:
    found = elute.fit(log, "dctr", session="session_id", holdout=0.25, by=by)
    held = found.summary["holdout"]
    assert found.summary["sessions"] + held["pages"] == 900
    assert held["pages"] == pytest.approx(225, abs=2 if by == "time" else 90)
    assert held["unseen_items"] == (1.0 if by != "session" else pytest.approx(0, abs=0.05))
    for name in ("perplexity", "conditional_perplexity", "page_log_likelihood"):
        figure = held[name]
        assert figure["low"] < figure["estimate"] < figure["high"]
    assert held["perplexity"] == held["conditional_perplexity"]  # dctr has no memory


def test_a_count_model_is_held_to_the_same(log: Path) -> None:
    """The same click rates, counted by another program, and split by the same pages."""
    pages = elute.fit(log, "dctr", session="session_id", holdout=0.25).summary["holdout"]
    cells = elute.fit(log, "ctr", session="session_id", holdout=0.25).summary["holdout"]
    assert cells["impressions"] == pages["impressions"]
    assert cells["perplexity"]["estimate"] == pytest.approx(pages["perplexity"]["estimate"], rel=2e-3)
    assert cells["rank_perplexity"]["estimate"] == pytest.approx(pages["rank_perplexity"]["estimate"], rel=1e-6)


def test_what_cannot_be_held_out_is_said(log: Path) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"holdout": 1.5}, "above 0 and below 1"),
        ({"holdout": 0.2, "session": None}, "to hold out by session"),
        ({"holdout": 0.2, "by": "time", "time": "when"}, "to hold out by time"),
        ({"by": "query"}, "`holdout=`"),
    )
    for given, says in cases:
        with pytest.raises(EluteError, match=says):
            elute.fit(log, "ctr", **{"session": "session_id", **given})

"""Ranking metrics against plain definitions (every order of ties tried), scikit-learn and worked examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import err, mrr, ndcg
from elute.errors import EluteError
from reference import plain_metrics as plain

Documents = list[tuple[int, float]]

documents = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0, 2.5])), max_size=6)
queries = st.lists(documents, min_size=1, max_size=4)
cuts = st.sampled_from([None, 1, 2, 3, 10])
tie_rules = st.sampled_from(["average", "stable"])


def flat(lists: list[Documents]) -> tuple[list[int], list[float], NDArray[np.int64]]:
    grades = [g for documents in lists for g, _ in documents]
    scores = [s for documents in lists for _, s in documents]
    return grades, scores, np.cumsum([0] + [len(documents) for documents in lists])


def columns(documents: Documents) -> tuple[list[int], list[float]]:
    return [g for g, _ in documents], [s for _, s in documents]


def mean(values):
    counted = [v for v in values if not math.isnan(v)]
    return sum(counted) / len(counted) if counted else math.nan


@settings(deadline=None)
@given(queries, cuts, tie_rules, st.sampled_from(["zero", "one", "skip"]))
def test_ndcg_is_the_plain_one(lists, k, ties, without):
    found = ndcg(*flat(lists), k, ties=ties, without=without)
    expected = [plain.ndcg(*columns(documents), k, ties, without) for documents in lists]
    np.testing.assert_allclose(found.by_query, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.mean, mean(expected), rtol=1e-12)


@settings(deadline=None)
@given(queries, cuts, tie_rules)
def test_err_is_the_plain_one(lists, k, ties):
    found = err(*flat(lists), k, highest=4, ties=ties)
    expected = [plain.err(*columns(documents), k, 4, ties) for documents in lists]
    np.testing.assert_allclose(found.by_query, expected, rtol=1e-12, atol=1e-15)


@settings(deadline=None)
@given(queries, cuts, tie_rules, st.sampled_from([1, 3]))
def test_mrr_is_the_plain_one(lists, k, ties, relevant):
    found = mrr(*flat(lists), k, relevant=relevant, ties=ties)
    expected = [plain.mrr(*columns(documents), k, relevant, ties) for documents in lists]
    np.testing.assert_allclose(found.by_query, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("k", [None, 1, 5, 10])
def test_ndcg_is_scikit_learns(k):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, (200, 12))
    grades[:, 0] = 1  # scikit-learn has its own rule for queries without a relevant document
    scores = rng.integers(0, 6, (200, 12)).astype(float)
    found = ndcg(grades.ravel(), scores.ravel(), np.arange(0, 2401, 12), k)
    assert found.mean == pytest.approx(metrics.ndcg_score(2**grades - 1, scores, k=k), rel=1e-12)


def test_the_example_of_the_expected_reciprocal_rank():
    # R = (0.5, 0.25) at ranks 1 and 2: 0.5 + 0.5 · 0.25 / 2
    assert err([1, np.log2(1.5)], [2, 1], [0, 2], highest=1).mean == pytest.approx(0.5 + 0.5 * 0.25 / 2)


def test_a_constant_score_ranks_at_random():
    # One relevant document among ten equals: its expected reciprocal rank is the mean of 1/1 … 1/10.
    grades = [0] * 9 + [1]
    assert mrr(grades, [3.0] * 10, [0, 10]).mean == pytest.approx(np.mean(1 / np.arange(1, 11)))
    assert mrr(grades, [3.0] * 10, [0, 10], ties="stable").mean == pytest.approx(0.1)
    assert ndcg(grades, [3.0] * 10, [0, 10]).mean == pytest.approx(np.mean(1 / np.log2(np.arange(2, 12))))


def test_a_long_list_of_ties_stays_exact():
    grades = np.tile([0, 1, 2, 3], 500)
    assert 0 < err(grades, np.zeros(2000), [0, 2000]).mean < 1
    shuffled = np.random.default_rng(1).random((400, 2000))
    sampled = err(np.tile(grades, 400), shuffled.ravel(), np.arange(0, 800_001, 2000)).by_query
    assert err(grades, np.zeros(2000), [0, 2000]).mean == pytest.approx(
        sampled.mean(), abs=4 * sampled.std() / np.sqrt(400)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndcg([1, 2], [1.0], [0, 2]), "equally long"),
        (lambda: ndcg([1, 2], [1.0, 2.0], [0, 3]), "offsets must rise from 0"),
        (lambda: ndcg([1, 2], [1.0, 2.0], [0, 2, 1, 2]), "offsets must rise from 0"),
        (lambda: ndcg([1, 2], [1.0, np.nan], [0, 2]), "1 scores are NaN"),
        (lambda: ndcg([1, -1], [1.0, 2.0], [0, 2]), "without a grade"),
        (lambda: ndcg([1, 2], [1.0, 2.0], [0, 2], 0), "k must be at least 1"),
        (lambda: ndcg([1, 2], [1.0, 2.0], [0, 2], ties="random"), "no rule 'random'"),  # type: ignore[arg-type]
        (lambda: ndcg([1, 2], [1.0, 2.0], [0, 2], without="two"), "no rule 'two'"),  # type: ignore[arg-type]
        (lambda: err([1, 5], [1.0, 2.0], [0, 2]), "pass highest="),
    ],
)
def test_what_cannot_be_ranked_is_named(call, message):
    with pytest.raises(EluteError, match=message):
        call()

"""Documents of a query depend on each other: ranks within queries, exact permutations, errors by query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from elute.auditing.cmip import cmip
from elute.auditing.cmip.within import cluster_variance, rank_within
from elute.errors import EluteError


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=40))
def test_ranks_are_those_of_each_query_alone(rows):
    query, score = np.array(rows).T
    found = rank_within(score, np.unique(query, return_inverse=True)[1])
    for q in np.unique(query):
        own = query == q
        np.testing.assert_allclose(found[own], (rankdata(score[own]) - 0.5) / own.sum())


def draw(correlation: float, seed: int, bias: float = 0.0):
    """86 queries of ten, with query effects in both scores; with `bias` the model follows the policy."""
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, 3, (86, 10))
    policy, scores = (
        np.sqrt(correlation) * rng.standard_normal((86, 1)) + np.sqrt(1 - correlation) * rng.standard_normal((86, 10))
        for _ in range(2)
    )
    query = np.repeat(np.arange(86), 10)
    return (grade + scores + bias * policy).ravel(), (grade + policy).ravel(), grade.ravel(), query


def test_query_effects_do_not_reject_a_true_null():
    """As published the test takes them for bias in half of all draws; within queries it keeps its level."""
    published = within = 0
    for seed in range(150):
        scores, policy, grade, query = draw(0.8, seed)
        published += cmip(scores, policy, grade, "copula", seed, 39).p_value <= 0.05
        within += cmip(scores, policy, grade, "copula", seed, 39, query).p_value <= 0.05
    assert published > 0.3 * 150
    assert 0.01 * 150 <= within <= 0.1 * 150


def test_bias_is_found_within_queries():
    scores, policy, grade, query = draw(0.5, 0, bias=0.5)
    found = cmip(scores, policy, grade, "copula", queries=query)
    assert found.p_value == 0.001
    assert found.low > 0
    shifted = policy + 100 * np.random.default_rng(1).standard_normal(86)[query]
    again = cmip(scores, shifted, grade, "copula", queries=query)
    assert again == found  # what a query's scores share does not matter


def test_the_error_counts_queries():
    values, query = np.repeat(np.random.default_rng(0).standard_normal(30), 10), np.repeat(np.arange(30), 10)
    alone = cluster_variance(values, np.arange(300))
    assert cluster_variance(values, query) == pytest.approx(10 * alone * (30 / 29) / (300 / 299))
    assert cluster_variance(values, np.zeros(300, np.int64)) == np.inf


def test_every_document_needs_a_query():
    with pytest.raises(EluteError, match="queries must name the query of every document"):
        cmip(np.arange(30.0), np.arange(30.0), np.zeros(30), queries=[1, 2])

"""Perplexity and log-likelihood against plain definitions, closed forms and scikit-learn's log loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.auditing.perplexity import Losses, compute_losses, conditional_perplexity, finish, log_likelihood, perplexity
from elute.errors import EluteError
from reference import plain_metrics as plain

pages = st.lists(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.integers(0, 1)), min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)


def padded(lists):
    width = max(map(len, lists))
    p, c, shown = np.zeros((len(lists), width)), np.ones((len(lists), width)), np.zeros((len(lists), width), bool)
    for i, page in enumerate(lists):
        for j, (probability, click) in enumerate(page):
            p[i, j], c[i, j], shown[i, j] = probability, click, True
    return p, c, shown


@given(pages)
def test_perplexity_is_the_plain_one_flat_and_padded(lists):
    ranked = [[(rank, p, c) for rank, (p, c) in enumerate(page, 1)] for page in lists]
    at_rank, mean = plain.perplexity(ranked)
    p, c, shown = padded(lists)
    flat = [impression for page in ranked for impression in page]
    for found in (
        perplexity(p, c, mask=shown),
        conditional_perplexity(p, c, mask=shown),
        perplexity([p for _, p, _ in flat], [c for _, _, c in flat], ranks=[rank for rank, _, _ in flat]),
    ):
        np.testing.assert_allclose(found.at_rank, [at_rank[rank] for rank in sorted(at_rank)], rtol=1e-12)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-12)


@given(pages, st.integers(0, 5))
def test_parts_of_a_test_set_add_up(lists, cut):
    p, c, shown = padded(lists)
    total = Losses(np.zeros(0), np.zeros(0, np.int64))
    for part in (slice(None, cut), slice(cut, None)):
        flat_ranks = np.broadcast_to(np.arange(1, p.shape[1] + 1), p.shape)[part][shown[part]]
        total = total.add(compute_losses(p[part][shown[part]], c[part][shown[part]], ranks=flat_ranks))
    np.testing.assert_allclose(finish(total).at_rank, perplexity(p, c, mask=shown).at_rank, rtol=1e-12)


def test_perplexity_of_a_coin_is_two_and_of_the_truth_two_to_the_entropy():
    rng = np.random.default_rng(0)
    truth = np.array([0.5, 0.2, 0.05])
    clicks = rng.random((200_000, 3)) < truth
    assert perplexity(np.full((200_000, 3), 0.5), clicks).mean == pytest.approx(2, rel=1e-12)
    entropy = -(truth * np.log2(truth) + (1 - truth) * np.log2(1 - truth))
    found = perplexity(np.tile(truth, (200_000, 1)), clicks)
    np.testing.assert_allclose(found.at_rank, 2**entropy, rtol=0.01)


def test_a_rank_never_shown_has_no_perplexity():
    found = perplexity([0.5, 0.25], [1, 0], ranks=[1, 3])
    np.testing.assert_allclose(found.at_rank, [2, np.nan, 4 / 3])
    assert found.mean == pytest.approx((2 + 4 / 3) / 2)


def test_certain_and_wrong_is_infinite():
    assert perplexity([[0.0, 1.0]], [[1, 1]]).at_rank.tolist() == [math.inf, 1.0]
    assert log_likelihood([0.0], [1]) == -math.inf


def test_log_likelihood_is_scikit_learns_log_loss():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    p, c = rng.random(500), rng.integers(0, 2, 500)
    assert log_likelihood(p, c) == pytest.approx(-500 * metrics.log_loss(c, p), rel=1e-12)
    assert log_likelihood(p.reshape(50, 10), c.reshape(50, 10)) == pytest.approx(log_likelihood(p, c))
    half = np.arange(500) < 250
    assert log_likelihood(p, c, mask=half) == pytest.approx(log_likelihood(p[half], c[half]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: perplexity([0.5], [1]), "need ranks="),
        (lambda: perplexity([0.5], [1], ranks=[0]), "count from 1"),
        (lambda: perplexity([0.5, 0.5], [1, 0], ranks=[1]), "one rank for each"),
        (lambda: perplexity([[0.5]], [[1]], ranks=[[1]]), "from their columns"),
        (lambda: perplexity([2.5], [1], ranks=[1]), "not logits"),
        (lambda: perplexity([math.nan], [1], ranks=[1]), "not logits"),
        (lambda: perplexity([0.5], [2], ranks=[1]), r"clicks must lie in \[0, 1\]"),
        (lambda: perplexity([0.5], [[1]], ranks=[1]), "one shape"),
        (lambda: perplexity([[0.5]], [[1]], mask=[True]), "the mask must have the shape"),
    ],
)
def test_what_cannot_be_scored_is_named(call, message):
    with pytest.raises(EluteError, match=message):
        call()

"""Losses and nDCG against plain numpy and other implementations; padding changes nothing."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neural_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation
from neural_worlds import graded, quick

from elute.auditing.ranking_metrics import ndcg as audited
from elute.errors import EluteError
from elute.neural import losses
from elute.neural.metrics import ndcg, to_graded_documents
from reference import neural_plain as plain

compiled = {name: quick(losses.get_loss(name)) for name in plain.OBJECTIVES}
attention = quick(losses.attention_rank)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), lengths=st.lists(st.integers(0, 6), min_size=3, max_size=3))
@pytest.mark.parametrize("name", plain.OBJECTIVES)
def test_losses_are_means_over_lists_whatever_is_padded(name: Any, seed: int, lengths: list[int]) -> None:
    rng = np.random.default_rng(seed)
    scores, targets = rng.normal(size=(2, 3, 6)).astype(np.float32)
    mask = np.arange(6) < np.array(lengths)[:, None]
    found = compiled[name](np.where(mask, scores, 1e6), np.where(mask, targets, -7), mask)
    by_list = [plain.OBJECTIVES[name](s[:n], t[:n]) for s, t, n in zip(scores, targets, lengths, strict=True) if n]
    assert float(found) == pytest.approx(np.mean(by_list) if by_list else 0.0, rel=1e-4, abs=1e-5)


def test_attention_rank_is_the_cross_entropy_of_two_softmaxes() -> None:
    scores, wanted = np.random.default_rng(0).normal(size=(2, 4, 6)).astype(np.float32)
    mask = np.arange(6) < np.array([6, 2, 1, 4])[:, None]
    expected = np.mean(
        [plain.listwise(s[m], plain.softmax(w[m])) for s, w, m in zip(scores, wanted, mask, strict=True)]
    )
    assert float(attention(scores, wanted, mask)) == pytest.approx(expected, rel=1e-5)


def test_large_scores_stay_finite() -> None:
    scores, mask = np.array([[3e4, -3e4, 0]], np.float32), np.ones((1, 3), bool)
    for loss in compiled.values():
        assert np.isfinite(loss(scores, np.ones((1, 3), np.float32), mask))


def test_no_such_loss() -> None:
    with pytest.raises(EluteError, match="no loss 'hinge'; there are: softmax, sigmoid, pairwise"):
        losses.get_loss("hinge")


@pytest.mark.parametrize("k", [1, 3, 10])
def test_ndcg_is_that_of_the_audit(k: int) -> None:
    data = graded(60)
    data.grades[data.offsets[3] : data.offsets[4]] = 0
    scores = np.round(np.random.default_rng(2).normal(size=data.n_documents), 1).astype(np.float32)
    expected = audited(data.grades, scores, data.offsets, k, ties="stable").mean
    assert float(ndcg(jnp.asarray(scores), to_graded_documents(data), k)) == pytest.approx(expected, rel=1e-5)

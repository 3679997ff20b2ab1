"""Blocks cover all items once, and work on them gives what work on all at once gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import counts_of

from elute.estimate.models.pbm import PBM
from elute.estimate.solve.laplacian import _multiply, multiply
from elute.kernels import blocks as module
from elute.kernels.blocks import cut_blocks, map_blocks


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 20))
def test_every_item_is_in_one_block(sizes, least):
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", least)
        parts = cut_blocks(offsets)
    assert [item for part in parts for item in range(part.start, part.stop)] == list(range(len(sizes)))
    assert len(parts) <= max(1, min(32, sum(sizes) // least))


def test_blocks_sum_to_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(1, 6, 500)))).astype(np.int64)
    factor = rng.integers(0, 30, offsets[-1]).astype(np.int32)
    weight, v = rng.random(offsets[-1]), rng.standard_normal(30)
    whole = _multiply(offsets, factor, weight, v)
    monkeypatch.setattr(module, "_CELLS", 100)
    assert len(cut_blocks(offsets)) > 5
    assert multiply(offsets, factor, weight, v) == pytest.approx(whole, rel=1e-12)
    assert sum(map_blocks(lambda items, own: own[-1] - own[0], offsets)) == offsets[-1]


def test_a_fit_in_blocks_is_the_fit(monkeypatch):
    """Cells clicked every time have multipliers of their own, which must find their block."""
    rng = np.random.default_rng(1)
    item, factor = np.nonzero(rng.random((200, 12)) < 0.5)
    n = rng.integers(1, 6, len(item))
    c = rng.binomial(n, 0.9 / (1 + 0.1 * factor))
    assert ((n == c).sum(), (c == 0).sum()) > (100, 20)
    rows = np.stack((item, factor, n, c), axis=1)
    counts = counts_of(rows[np.isin(item, np.unique(item))].tolist(), 12)
    whole = PBM(relevance_prior="none").fit(counts)
    monkeypatch.setattr(module, "_CELLS", 150)
    parts = PBM(relevance_prior="none").fit(counts)
    assert parts.iterations_ == whole.iterations_
    assert parts.propensity_ == pytest.approx(whole.propensity_, rel=1e-9)
    assert parts.relevance_values_ == pytest.approx(whole.relevance_values_, rel=1e-9)

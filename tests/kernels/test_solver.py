"""Solutions with the profiled information matrix against the dense pseudo-inverse, however items tie factors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.elimination import eliminate_items, eliminate_nodes
from elute.kernels.solver import Solver


def draw_cells(rng, n, items, most, spread):
    """Items of up to `most` cells, weights over some orders of magnitude; some carry nothing."""
    rows = [np.sort(rng.choice(n, rng.integers(0, min(most, n) + 1), replace=False)) for _ in range(items)]
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
    factor = np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32)
    w = np.exp(spread * rng.normal(size=len(factor)))
    w[rng.random(len(w)) < 0.1] = 0.0
    return offsets, factor, w


def dense(offsets, factor, w, n):
    table = np.zeros((len(offsets) - 1, n))
    table[np.repeat(np.arange(len(table)), np.diff(offsets)), factor] = w
    total = table.sum(axis=1, keepdims=True)
    ties = table.T @ np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    np.fill_diagonal(ties, 0.0)
    return np.diag(ties.sum(axis=0)) - ties


@given(
    st.integers(0, 2**32), st.integers(1, 40), st.integers(0, 60), st.sampled_from([2, 3, 12]), st.sampled_from([0, 2])
)
@settings(max_examples=60, deadline=None)
def test_solutions_are_those_of_the_pseudo_inverse(seed, n, items, most, spread):
    """Up to a constant in each connected part."""
    rng = np.random.default_rng(seed)
    offsets, factor, w = draw_cells(rng, n, items, most, spread)
    matrix = dense(offsets, factor, w, n)
    b = matrix @ rng.normal(size=(n, 11))
    found = Solver(offsets, factor, w, n).solve(b, 1e-16)
    assert matrix @ found == pytest.approx(b, rel=1e-5, abs=1e-5 * np.abs(b).max(initial=1e-9))
    off = found - np.linalg.pinv(matrix, rcond=1e-13) @ b
    energy = np.sqrt(np.einsum("ij,ij->j", off, matrix @ off).clip(0))
    assert (energy <= 1e-4 * np.sqrt(np.einsum("ij,ij->j", b, found)) + 1e-9).all()
    assert np.isfinite(found).all()


def test_a_tree_is_eliminated_exactly():
    """Of a tree nothing is drawn: the factorisation is L itself."""
    rng = np.random.default_rng(0)
    n = 30
    one = np.array([rng.integers(t) for t in range(1, n)], np.int32)
    other, weight = np.arange(1, n, dtype=np.int32), rng.uniform(0.1, 9, n - 1)
    found = eliminate_nodes(one, other, weight, n, 0)
    lower = np.eye(n)
    for step, node in enumerate(found.order):
        own = slice(found.starts[step], found.starts[step + 1])
        lower[found.node[own], node] = -found.weight[own]
    pivot = np.zeros(n)
    pivot[found.order] = found.pivot
    laplacian = np.zeros((n, n))
    for a, b, w in zip(one, other, weight, strict=True):
        laplacian[[a, b], [a, b]] += w
        laplacian[[a, b], [b, a]] -= w
    assert lower @ np.diag(pivot) @ lower.T == pytest.approx(laplacian, abs=1e-9)


def test_an_item_is_replaced_by_edges_of_the_same_mean():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    total, rng, rounds = np.zeros((4, 4)), np.random.default_rng(0), 4_000
    for _ in range(rounds):
        one, other, weight = eliminate_items(np.array([0, 4]), np.arange(4, dtype=np.int32), weights, rng.random(4))
        assert len(one) == 3
        np.add.at(total, (np.minimum(one, other), np.maximum(one, other)), weight / rounds)
    expected = np.triu(np.outer(weights, weights) / weights.sum(), 1)
    assert total == pytest.approx(expected, abs=0.06)


def test_parts_that_hang_by_threads_take_few_steps():
    """A hundred parts of ten factors, tied in a ring by items ten thousand times weaker: still solved, and quickly."""
    rng = np.random.default_rng(0)
    inside = [(10 * c + i, 10 * c + (i + step) % 10) for c in range(100) for i in range(10) for step in (1, 3)]
    across = [(10 * c, (10 * c + 10) % 1000) for c in range(100)]
    factor = np.sort(np.array(inside + across, np.int32), axis=1).ravel()
    w = np.repeat(np.where(np.arange(2_100) < 2_000, 1.0, 1e-4), 2)
    cells = np.arange(0, 4_201, 2), factor, w
    matrix = dense(*cells, 1_000)
    b = matrix @ rng.normal(size=(1_000, 3))
    found = Solver(*cells, 1_000).solve(b, 1e-10)
    assert np.abs(matrix @ found - b).max() < 1e-4 * np.abs(b).max()

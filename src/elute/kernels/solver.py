"""Solving with the profiled information matrix of many factors, for many right-hand sides side by side.

Conjugate gradients, preconditioned by approximate elimination (`elute.kernels.elimination`). Where few links hold parts
together, as in a plan's, the diagonal alone would need thousands of steps; with this it is a dozen or two. An edge is
read once for all columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.kernels.blocks import map_chunks
from elute.kernels.elimination import Elimination, eliminate_items, eliminate_nodes
from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

_AT_ONCE = 8
"""Columns that one thread solves for."""

_DELAY = 4
"""Steps whose gain in energy says how much is left."""

_SMALL = 6
"""Cells of an item, at most, that is turned into edges."""


class _Edges(NamedTuple):
    """Of each factor, its neighbours by items of few cells, and the weights: the rows of a symmetric matrix."""

    starts: Ints
    node: Codes
    weight: Floats


class Solver:
    """Solves with L of cells sorted by item. Items of one cell tell nothing and are left out, those of few are turned
    into edges between factors, of which there are fewer than cells where many items tie the same factors."""

    def __init__(self, offsets: Ints, factor: Codes, w: Floats, n_factors: int, seed: int = 0):
        known = w > 0
        starts = np.concatenate(([0], np.cumsum(known)))[offsets]
        ties = np.flatnonzero(np.diff(starts) > 1)
        self.offsets, self.factor, self.w = _take_items(starts, factor[known], w[known], ties)
        self.n_factors = n_factors
        size = np.diff(self.offsets)
        few = _take_items(self.offsets, self.factor, self.w, np.flatnonzero(size <= _SMALL))
        self._stars = _take_items(self.offsets, self.factor, self.w, np.flatnonzero(size > _SMALL))
        self._edges = _tie_factors(*few, n_factors)
        upper = _take_upper(*self._edges)
        draws = np.random.default_rng(seed).random(len(self._stars[1]))
        one, other, weight = eliminate_items(*self._stars, draws)
        self.about = eliminate_nodes(
            np.concatenate((upper[0], one)),
            np.concatenate((upper[1], other)),
            np.concatenate((upper[2], weight)),
            n_factors,
            seed,
        )

    def solve(self, b: Floats, left: float) -> Floats:
        """L⁺·b for the columns of `b`, up to a constant a connected part, in which `b` must sum to 0. `left`: the share
        of a column's energy bᵀL⁺b that may be missing."""
        n, columns = b.shape

        def solve_some(some: Ints) -> Floats:
            padded = np.zeros((n, _AT_ONCE))
            padded[:, : len(some)] = b[:, some]
            return _solve(self._edges, self._stars, self.about, padded, left, 10 * n + 100)[:, : len(some)]

        return np.concatenate(map_chunks(solve_some, np.arange(columns), _AT_ONCE), axis=1)


def _take_items(offsets: Ints, factor: Codes, w: Floats, items: Ints) -> tuple[Ints, Codes, Floats]:
    size = np.diff(offsets)[items]
    starts = np.concatenate(([0], np.cumsum(size)))
    cell = np.repeat(offsets[items] - starts[:-1], size) + np.arange(starts[-1])
    return starts, factor[cell], w[cell]


def _tie_factors(offsets: Ints, factor: Codes, w: Floats, n_factors: int) -> _Edges:
    """w_s·w_t/T between the factors of every item, summed."""
    size = np.diff(offsets)
    total = np.repeat(np.add.reduceat(w, offsets[:-1]) if len(size) else np.empty(0), size)
    half = csr_array((w / np.sqrt(total), factor, offsets), shape=(len(size), n_factors))
    ties = csr_array(half.T @ half)
    ties.setdiag(0.0)
    ties.eliminate_zeros()
    return _Edges(ties.indptr.astype(np.int64), ties.indices.astype(np.int32), ties.data)


@jit
def _take_upper(starts: Ints, node: Codes, weight: Floats) -> tuple[Codes, Codes, Floats]:
    """Each edge once."""
    one = np.empty(node.shape[0], np.int32)
    for v in range(starts.shape[0] - 1):
        one[starts[v] : starts[v + 1]] = v
    kept = one < node
    return one[kept], node[kept], weight[kept]


@jit
def _apply(about: Elimination, y: Floats) -> None:
    """Solve with the factorisation, in place."""
    order, starts, node, weight, pivot = about
    for step in range(order.shape[0]):
        own = y[np.uint32(order[step])]
        for entry in range(starts[step], starts[step + 1]):
            share, row = weight[entry], y[np.uint32(node[entry])]
            for c in range(_AT_ONCE):
                row[c] += share * own[c]
        scale = 1.0 / pivot[step] if pivot[step] > 0.0 else 0.0
        for c in range(_AT_ONCE):
            own[c] *= scale
    for step in range(order.shape[0] - 1, -1, -1):
        own = y[np.uint32(order[step])]
        for entry in range(starts[step], starts[step + 1]):
            share, row = weight[entry], y[np.uint32(node[entry])]
            for c in range(_AT_ONCE):
                own[c] += share * row[c]


@jit
def _multiply(edges: _Edges, stars: tuple[Ints, Codes, Floats], v: Floats, out: Floats) -> None:
    """L·v."""
    for node in range(v.shape[0]):
        own, image = v[node], out[node]
        for c in range(_AT_ONCE):
            image[c] = 0.0
        for edge in range(edges.starts[node], edges.starts[node + 1]):
            weight, row = edges.weight[edge], v[np.uint32(edges.node[edge])]
            for c in range(_AT_ONCE):
                image[c] += weight * (own[c] - row[c])
    offsets, factor, w = stars
    mean = np.empty(_AT_ONCE)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = w[begin:end].sum()
        mean[:] = 0.0
        for cell in range(begin, end):
            weight, row = w[cell] / total, v[np.uint32(factor[cell])]
            for c in range(_AT_ONCE):
                mean[c] += weight * row[c]
        for cell in range(begin, end):
            weight, row, image = w[cell], v[np.uint32(factor[cell])], out[np.uint32(factor[cell])]
            for c in range(_AT_ONCE):
                image[c] += weight * (row[c] - mean[c])


@jit
def _solve(
    edges: _Edges, stars: tuple[Ints, Codes, Floats], about: Elimination, b: Floats, left: float, max_steps: int
) -> Floats:
    """Conjugate gradients with a length of step for each column."""
    n = b.shape[0]
    x, residual, image = np.zeros_like(b), b.copy(), np.empty_like(b)
    z = residual.copy()
    _apply(about, z)
    direction = z.copy()
    along, energy, gains = np.zeros(_AT_ONCE), np.zeros(_AT_ONCE), np.zeros((_DELAY, _AT_ONCE))
    for i in range(n):
        for c in range(_AT_ONCE):
            along[c] += residual[i, c] * z[i, c]
    for step in range(max_steps):
        _multiply(edges, stars, direction, image)
        curvature, following = np.zeros(_AT_ONCE), np.zeros(_AT_ONCE)
        for i in range(n):
            for c in range(_AT_ONCE):
                curvature[c] += direction[i, c] * image[i, c]
        for c in range(_AT_ONCE):
            length = along[c] / curvature[c] if curvature[c] > 0.0 else 0.0
            curvature[c] = length
            gains[step % _DELAY, c] = length * along[c]
            energy[c] += length * along[c]
        done = step >= _DELAY
        for c in range(_AT_ONCE):
            done = done and gains[:, c].sum() <= left * energy[c]
        for i in range(n):
            for c in range(_AT_ONCE):
                x[i, c] += curvature[c] * direction[i, c]
                residual[i, c] -= curvature[c] * image[i, c]
                z[i, c] = residual[i, c]
        if done:
            break
        _apply(about, z)
        for i in range(n):
            for c in range(_AT_ONCE):
                following[c] += residual[i, c] * z[i, c]
        for c in range(_AT_ONCE):
            curvature[c] = following[c] / along[c] if along[c] > 0.0 else 0.0
            along[c] = following[c]
        for i in range(n):
            for c in range(_AT_ONCE):
                direction[i, c] = z[i, c] + curvature[c] * direction[i, c]
    return x

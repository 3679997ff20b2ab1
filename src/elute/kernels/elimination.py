"""Solving with the profiled information matrix of many factors: approximate elimination, then conjugate gradients.

L = diag(Wᵀ1) - Wᵀ diag(W1)⁻¹ W is what is left of the graph of items and factors, an edge of weight w a cell, once the
items are eliminated. Eliminating a node of neighbours 1..d with weights w₁ ≤ … ≤ w_d, Σ w = T, leaves an edge of weight
w_i·w_j/T between each two of them. Instead, i is tied to one later j, drawn with probability w_j/Σ_{k>i} w_k, by an edge
of weight w_i·Σ_{k>i} w_k/T: the same in expectation, and never more edges than before (Kyng and Sachdeva, FOCS 2016).
So a factorisation of about L costs no more than L itself, however the graph looks: where few links hold parts together,
as in a plan's, conjugate gradients with the diagonal alone need thousands of steps, with this some dozens.

Columns are solved for side by side: a cell is read once for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.kernels.blocks import map_chunks
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

_FEW = 32
"""Neighbours that are sorted by insertion."""

_PRIME = 2_147_483_647
"""Of the random numbers by which nodes are eliminated (Park and Miller)."""


class Elimination(NamedTuple):
    """About L: the nodes in `order`, each with `weight` = w/T of its later neighbours `node`, and its `pivot` T."""

    order: Codes
    starts: Ints
    node: Codes
    weight: Floats
    pivot: Floats


class _Edges(NamedTuple):
    """Of each factor, its neighbours by items of few cells, and the weights: the rows of a symmetric matrix."""

    starts: Ints
    node: Codes
    weight: Floats


class Solver:
    """Solves with L of cells sorted by item. Items of one cell tell nothing and are left out, those of few are turned
    into edges between factors, of which there are fewer than cells where many items tie the same factors."""

    def __init__(self, offsets: Ints, factor: Codes, w: Floats, n_factors: int, seed: int = 0):
        size = np.diff(offsets)
        self.offsets, self.factor, self.w = _take_items(offsets, factor, w, np.flatnonzero(size > 1))
        self.n_factors = n_factors
        size = np.diff(self.offsets)
        few = _take_items(self.offsets, self.factor, self.w, np.flatnonzero(size <= _SMALL))
        self._stars = _take_items(self.offsets, self.factor, self.w, np.flatnonzero(size > _SMALL))
        self._edges = _tie_factors(*few, n_factors)
        upper = _take_upper(*self._edges)
        draws = np.random.default_rng(seed).random(len(self._stars[1]))
        edges = [np.concatenate(both) for both in zip(upper, _eliminate_items(*self._stars, draws), strict=True)]
        self.about = Elimination(*_eliminate_nodes(*edges, n_factors, seed))

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
def _rank(values: Floats, out: Ints) -> None:
    """Places of a few values in rising order."""
    for i in range(values.shape[0]):
        at = i
        while at > 0 and values[out[at - 1]] > values[i]:
            out[at] = out[at - 1]
            at -= 1
        out[at] = i


@jit
def _eliminate_items(offsets: Ints, factor: Codes, w: Floats, draws: Floats) -> tuple[Codes, Codes, Floats]:
    """Edges among factors in place of the items'."""
    one, other = np.empty(factor.shape[0], np.int32), np.empty(factor.shape[0], np.int32)
    weight = np.empty(factor.shape[0])
    m, few = 0, np.empty(_FEW, np.int64)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        if end - begin <= _FEW:
            order = few[: end - begin]
            _rank(w[begin:end], order)
            order += begin
        else:
            order = begin + np.argsort(w[begin:end])
        total = w[begin:end].sum()
        later = total
        for i in range(order.shape[0] - 1):
            own = w[order[i]]
            later -= own
            if own <= 0.0:
                continue
            at, j = draws[order[i]] * later, i + 1
            while j < order.shape[0] - 1 and at >= w[order[j]]:
                at -= w[order[j]]
                j += 1
            one[m], other[m], weight[m] = factor[order[i]], factor[order[j]], own * (later / total)
            m += 1
    return one[:m], other[:m], weight[:m]


@jit
def _enlist(heads: Ints, following: Ints, before: Ints, node: int, bucket: int) -> None:
    following[node], before[node] = heads[bucket], -1
    if heads[bucket] >= 0:
        before[heads[bucket]] = node
    heads[bucket] = node


@jit
def _delist(heads: Ints, following: Ints, before: Ints, node: int, bucket: int) -> None:
    if before[node] >= 0:
        following[before[node]] = following[node]
    else:
        heads[bucket] = following[node]
    if following[node] >= 0:
        before[following[node]] = before[node]


@jit
def _eliminate_nodes(
    one: Codes, other: Codes, weights: Floats, n: int, seed: int
) -> tuple[Codes, Ints, Codes, Floats, Floats]:
    """Nodes of fewest edges first. Edge e has two halves, 2e and 2e + 1, in the lists of its ends."""
    m = one.shape[0]
    to, worth, link = np.empty(2 * m, np.int32), np.empty(2 * m), np.empty(2 * m, np.int64)
    first, degree = np.full(n, -1), np.zeros(n, np.int64)
    for edge in range(m):
        for half in (2 * edge, 2 * edge + 1):
            a = one[edge] if half % 2 == 0 else other[edge]
            to[half], worth[half] = one[edge] + other[edge] - a, weights[edge]
            link[half] = first[a]
            first[a] = half
            degree[a] += 1
    most = max(min(n, 1_000), 1)
    heads, following, before = np.full(most + 1, -1), np.empty(n, np.int64), np.empty(n, np.int64)
    for node in range(n):
        _enlist(heads, following, before, node, min(degree[node], most))
    order, starts, pivot = np.empty(n, np.int32), np.zeros(n + 1, np.int64), np.zeros(n)
    nodes, shares = np.empty(2 * m, np.int32), np.empty(2 * m)
    place, size, bucket, state = np.full(n, -1), 0, 0, seed % (_PRIME - 1) + 1
    few, found, halves, sums = np.empty(_FEW, np.int64), np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)
    for step in range(n):
        while heads[bucket] < 0:
            bucket += 1
        v = heads[bucket]
        _delist(heads, following, before, v, bucket)
        order[step], d, half = v, 0, first[v]
        while half >= 0:
            u, after = to[half], link[half]
            if worth[half] > 0.0:
                if place[u] < 0:
                    place[u], found[d], halves[d], sums[d] = d, u, half, worth[half]
                    d += 1
                else:
                    sums[place[u]] += worth[half]
                    _delist(heads, following, before, u, min(degree[u], most))
                    degree[u] -= 1
                    _enlist(heads, following, before, u, min(degree[u], most))
                    bucket = min(bucket, min(degree[u], most))
                worth[half] = 0.0
                worth[half ^ 1] = 0.0
            half = after
        for i in range(d):
            place[found[i]] = -1
        if d <= _FEW:
            ranked = few[:d]
            _rank(sums[:d], ranked)
        else:
            ranked = np.argsort(sums[:d])
        total = sums[:d].sum()
        pivot[step], later = total, total
        if size + d > nodes.shape[0]:
            nodes, shares = np.append(nodes, np.empty_like(nodes)), np.append(shares, np.empty_like(shares))
        for i in range(d):
            u, own, half = found[ranked[i]], sums[ranked[i]], halves[ranked[i]]
            nodes[size], shares[size] = u, own / total
            size += 1
            later -= own
            if i < d - 1:
                state = state * 48_271 % _PRIME
                at, j = state / _PRIME * later, i + 1
                while j < d - 1 and at >= sums[ranked[j]]:
                    at -= sums[ranked[j]]
                    j += 1
                k = found[ranked[j]]
                to[half ^ 1], to[half] = k, u
                worth[half] = worth[half ^ 1] = own * (max(later, 0.0) / total)
                link[half] = first[k]
                first[k] = half
                _delist(heads, following, before, k, min(degree[k], most))
                degree[k] += 1
                _enlist(heads, following, before, k, min(degree[k], most))
            else:
                _delist(heads, following, before, u, min(degree[u], most))
                degree[u] -= 1
                _enlist(heads, following, before, u, min(degree[u], most))
                bucket = min(bucket, min(degree[u], most))
        starts[step + 1] = size
    return order, starts, nodes[:size], shares[:size], pivot


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

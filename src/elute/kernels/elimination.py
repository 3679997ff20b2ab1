"""Approximate elimination: a factorisation of about the profiled information matrix, for any number of factors.

L = diag(Wᵀ1) - Wᵀ diag(W1)⁻¹ W is what is left of the graph of items and factors, an edge of weight w a cell, once the
items are eliminated. Eliminating a node of neighbours 1..d with weights w₁ ≤ … ≤ w_d, Σ w = T, leaves an edge of weight
w_i·w_j/T between each two of them. Instead, i is tied to one later j, drawn with probability w_j/Σ w_k over k > i, by
an edge of weight w_i·Σ w_k/T: the same in expectation, and never more edges than before (Kyng and Sachdeva, FOCS 2016).
So a factorisation of about L costs little more than L itself, however the graph looks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

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
def eliminate_items(offsets: Ints, factor: Codes, w: Floats, draws: Floats) -> tuple[Codes, Codes, Floats]:
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
def eliminate_nodes(one: Codes, other: Codes, weights: Floats, n: int, seed: int) -> Elimination:
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
    return Elimination(order, starts, nodes[:size], shares[:size], pivot)

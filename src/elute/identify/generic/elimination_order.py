"""The order in which to take up factors so that few parameters are open at a time.

A factor closes an equation of every support that has `base` earlier members. Taking the factor that closes most
keeps well-linked factors together and leaves loose ends for last. The result does not depend on it, the time does.
"""

from __future__ import annotations

import heapq

import numpy as np

from elute.identify.generic.supports import Codes, Ints
from elute.kernels.jit import jit

_CLOSES = 1 << 32
"""What an equation that a factor would close counts, against one that it would only open."""


@jit
def order_factors(offsets: Ints, factor: Codes, copies: Ints, base: int, n_factors: int) -> Ints:
    """All factors, one connected part after the other."""
    starts, inside = group_by_factor(offsets, factor, n_factors)
    weight, seen = np.zeros(n_factors, np.int64), np.zeros(copies.shape[0], np.int64)
    placed = np.zeros(n_factors, np.bool_)
    order = np.empty(n_factors, np.int64)
    heap = [(np.int64(0), np.int64(starts[t] - starts[t + 1]), np.int64(t)) for t in range(n_factors)]
    heapq.heapify(heap)
    n = 0
    while n < n_factors:
        negative, _, t = heapq.heappop(heap)
        if placed[t] or -negative != weight[t]:
            continue
        placed[t] = True
        order[n] = t
        n += 1
        for at in range(starts[t], starts[t + 1]):
            support = inside[at]
            seen[support] += 1
            if seen[support] > base:
                continue
            worth = copies[support] * (_CLOSES if seen[support] == base else 1)
            for cell in range(offsets[support], offsets[support + 1]):
                other = factor[cell]
                if not placed[other]:
                    weight[other] += worth
                    heapq.heappush(heap, (-weight[other], np.int64(starts[other] - starts[other + 1]), np.int64(other)))
    return order


@jit
def group_by_factor(offsets: Ints, factor: Codes, n_factors: int) -> tuple[Ints, Ints]:
    """The supports that every factor belongs to: factor t owns starts[t] to starts[t + 1]."""
    starts = np.zeros(n_factors + 1, np.int64)
    for cell in range(factor.shape[0]):
        starts[factor[cell] + 1] += 1
    starts = np.cumsum(starts)
    fill = starts[:-1].copy()
    inside = np.empty(factor.shape[0], np.int64)
    for support in range(offsets.shape[0] - 1):
        for cell in range(offsets[support], offsets[support + 1]):
            inside[fill[factor[cell]]] = support
            fill[factor[cell]] += 1
    return starts, inside

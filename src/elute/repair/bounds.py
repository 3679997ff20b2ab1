"""What merging costs: the error bound of Propositions 2 and 4 (Appendix A.5).

Merging factors a and b forces o'(a) = o'(b). If the merged fit reproduces every click probability, the
ratio r'(x)/r(x) is one constant within a component and jumps by |o(a) - o(b)| / o'(a) across the pair
(Proposition 2). Over the whole log it varies by at most the diameter of the tree of pairs (Proposition
4), so the pairs on the longest path are the ones that make the bound.

The bound is in units of r'/r: it scales with the units in which o and o' are given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MergeBound(NamedTuple):
    """`weights`: Proposition 2 for each pair. `diameter`: Proposition 4. `shares`: the part of the
    diameter each pair makes (0 off the longest path; they sum to 1 unless the diameter is 0)."""

    weights: Floats
    diameter: float
    shares: Floats


@jit
def _walk(start: int, first: Ints, end: Ints, edge: Ints, weight: Floats) -> tuple[Floats, Ints]:
    """Distances from component `start` along the tree (NaN: not reached), and the edge by which each is
    reached (-1: none). `first[c]` to `first[c + 1]` are the half-edges of component c."""
    n = first.shape[0] - 1
    distance = np.full(n, np.nan)
    via = np.full(n, -1)
    stack = [start]
    distance[start] = 0.0
    while len(stack) > 0:
        here = stack.pop()
        for half in range(first[here], first[here + 1]):
            there = end[half]
            if np.isnan(distance[there]):
                distance[there] = distance[here] + weight[edge[half]]
                via[there] = edge[half]
                stack.append(there)
    return distance, via


def merge_bound(
    pairs: NDArray[np.integer], component: NDArray[np.integer], propensity: Floats, merged: Floats
) -> MergeBound:
    """The bound of a merge plan: `pairs` (K - 1, 2) of factors, a spanning tree over the components 0 to
    K - 1; `propensity` o and `merged` o' a factor, o' equal within each pair."""
    a, b = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    if not (np.isfinite(propensity[a]) & np.isfinite(propensity[b]) & (merged[a] > 0)).all():
        raise ValueError("merged factors need a propensity, which must be above 0 after merging")
    weights = np.abs(propensity[a] - propensity[b]) / merged[a]
    ends = np.concatenate((component[a], component[b])).astype(np.int64)
    order = np.argsort(ends, kind="stable")
    first = np.searchsorted(ends[order], np.arange(int(component.max()) + 2))
    others = np.concatenate((component[b], component[a])).astype(np.int64)[order]
    edge = order % max(len(a), 1)

    distance, _ = _walk(0, first, others, edge, weights)
    if len(a) != len(distance) - 1 or np.isnan(distance).any():
        raise ValueError("the pairs are not a spanning tree over the components")
    distance, via = _walk(int(distance.argmax()), first, others, edge, weights)
    far = int(distance.argmax())
    diameter = float(distance[far])
    shares = np.zeros(len(a))
    while diameter > 0 and via[far] >= 0:
        pair = via[far]
        shares[pair] = weights[pair] / diameter
        far = int(component[a[pair]] + component[b[pair]] - far)
    return MergeBound(weights, diameter, shares)

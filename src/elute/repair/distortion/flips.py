"""Which queries keep their order: by how much the factors of a pair may differ before a query's items change places.

Items x of component i and y of component j, d pairs apart, keep the order that the merged fit gives them as long as
d·log δ < |log r'(x) - log r'(y)|. So a query's order flips first at

    δ = exp(min |log r'(x) - log r'(y)| / d(i, j))

over its items of different components; items of one component share their scale. A tie flips at δ = 1. Relevance 0
stays 0 at any scale: it changes places with nothing.

The minimum takes no look at all pairs. Items come by rising relevance; of every component only the last one seen can
be nearest to the next item, and components are kept with the latest first, so that the search ends where the gap
exceeds what even the longest path of the tree could close.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.repair.distortion.paths import Distances, Floats, Ints, distance


def find_flips(
    tree: Distances,
    longest: float,
    query: NDArray[np.integer],
    component: NDArray[np.integer],
    relevance: Floats,
    queries: int,
) -> Floats:
    """By query the δ at which its order flips first; infinite where none does it.

    `query`, `component` and `relevance` are by item of a query. `longest`: no distance of `tree` is larger. An item
    without an estimate (NaN) may be anywhere: its query, if it has items in other components, flips at 1.
    """
    across = find_across(query, component, queries)
    flips = np.full(queries, np.inf)
    lost = np.zeros(queries, np.bool_)
    lost[query[np.isnan(relevance)]] = True
    chosen = np.flatnonzero((across & ~lost)[query])
    with np.errstate(divide="ignore"):
        value = np.log(relevance[chosen])
    chosen = chosen[np.argsort(value, kind="stable")]
    value.sort()
    begin, order = _group_by_query(query[chosen], queries)
    chosen = chosen[order]
    with np.errstate(over="ignore"):
        flips[:] = np.exp(_find_least_gaps(tree, longest, begin, component[chosen], value[order]))
    flips[across & lost] = 1.0
    return flips


@jit
def find_across(query: NDArray[np.integer], component: NDArray[np.integer], queries: int) -> NDArray[np.bool_]:
    """By query: whether it has items in several components."""
    first = np.full(queries, -1)
    out = np.zeros(queries, np.bool_)
    for row in range(query.shape[0]):
        if first[query[row]] < 0:
            first[query[row]] = component[row]
        elif first[query[row]] != component[row]:
            out[query[row]] = True
    return out


@jit
def _group_by_query(query: NDArray[np.integer], queries: int) -> tuple[Ints, Ints]:
    """Where each query's rows begin and end, and the rows by query in the order in which they came."""
    begin = np.zeros(queries + 1, np.int64)
    for row in range(query.shape[0]):
        begin[query[row] + 1] += 1
    for one in range(queries):
        begin[one + 1] += begin[one]
    free = begin.copy()
    order = np.empty(query.shape[0], np.int64)
    for row in range(query.shape[0]):
        order[free[query[row]]] = row
        free[query[row]] += 1
    return begin, order


@jit
def _find_least_gaps(
    tree: Distances, longest: float, begin: Ints, component: NDArray[np.integer], value: Floats
) -> Floats:
    """By query the least gap of values over distance; rows of a query come by rising value."""
    n = tree.place.shape[0]
    last = np.empty(n)
    seen_by = np.full(n, -1)
    earlier = np.empty(n, np.int64)  # component seen before this one; -1: none
    later = np.empty(n, np.int64)
    out = np.full(begin.shape[0] - 1, np.inf)
    for query in range(out.shape[0]):
        best = np.inf
        head = -1
        for row in range(begin[query], begin[query + 1]):
            own = component[row]
            other = head
            while other >= 0:
                gap = value[row] - last[other]
                if gap >= best * longest:
                    break
                if other != own:
                    d = distance(tree, own, other)
                    if d > 0.0 and gap < best * d:
                        best = gap / d
                other = earlier[other]
            last[own] = value[row]
            if head == own:
                continue
            if seen_by[own] == query:
                earlier[later[own]] = earlier[own]
                if earlier[own] >= 0:
                    later[earlier[own]] = later[own]
            seen_by[own] = query
            earlier[own] = head
            if head >= 0:
                later[head] = own
            head = own
        out[query] = best
    return out

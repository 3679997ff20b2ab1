"""Pairs of items of one query that lie in different components: how many of them bounds put in order all the same.

With log r(x) within [low - φ(a), high - φ(a)], a the anchor of x and b that of y, log r(x) - log r(y) is at most
high(x) - low(y) + d(a, b): below 0, x is the worse one, whatever the scales are. d(a, b) is at least the difference of
φ at any solution; where that leaves no pair below 0, no path is looked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.bounds.constraints import ItemLimits
from elute.bounds.paths import Arrows, measure_pairs
from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST = 1_000
"""Items of a query that are compared, evenly spaced, where it has more."""

_COMPARED = 100_000_000
"""Pairs of items that are compared, at most: of more queries than that takes, some are drawn."""

_VISITED = 150_000_000
"""Nodes that searches for shortest paths may visit, in all."""

_SEED = 0


class Crossed(NamedTuple):
    """`pairs` of items in different groups and those that are `ordered`; `rankable` queries of the `queries` looked at:
    all pairs in one group, or ordered. `notes`: what was left out."""

    pairs: int
    ordered: int
    queries: int
    rankable: int
    notes: tuple[str, ...]

    @property
    def sampled(self) -> bool:
        """Whether some queries, or items, were left out."""
        return len(self.notes) > 0


def order_pairs(members: tuple[Ints, Ints], group: Ints, items: ItemLimits, arrows: Arrows, highest: Floats) -> Crossed:
    """`members`: numbers of items and the code of the query of each. `group`: by item, as of its
    anchor."""
    item, query, sizes, notes = _choose(*members)
    order = np.lexsort((items.anchor[item], query))
    item, query = item[order], query[order]
    anchor = items.anchor[item] + 1
    start = np.flatnonzero((np.diff(query, prepend=-1) != 0) | (np.diff(anchor, prepend=-1) != 0))
    ends = np.append(start, len(item))
    first, other = _list_pairs(query[start], group[item[start]])
    low, high = items.low[item], items.high[item]
    best = np.maximum.reduceat(low, start), np.minimum.reduceat(high, start)
    nodes, at = len(highest), anchor[start]
    ways = np.concatenate((np.stack((first, other)), np.stack((other, first))), axis=1)
    hopeful = best[1][ways[0]] - best[0][ways[1]] + highest[at[ways[1]]] - highest[at[ways[0]]] < 0
    wanted, code = np.unique(at[ways[0, hopeful]] * nodes + at[ways[1, hopeful]], return_inverse=True)
    shortest, searched = measure_pairs(arrows, highest, (wanted // nodes, wanted % nodes), _VISITED)
    distance = np.full(ways.shape[1], np.inf)
    distance[hopeful] = shortest[code]
    there, here = distance[: len(first)], distance[len(first) :]
    pairs, ordered, whole = _count_ordered(first, other, ends, there, here, low, high, query[start], sizes)
    sources = len(np.unique(wanted // nodes))
    if searched < sources:
        notes.append(f"ways over other components were followed from {searched:,} of {sources:,} factors only")
    return Crossed(pairs, ordered, len(sizes), whole, tuple(notes))


def _choose(item: Ints, query: Ints) -> tuple[Ints, Ints, Ints, list[str]]:
    """Rows of the queries that are looked at, numbered from 0, and the number of items of each."""
    codes, code, sizes = np.unique(query, return_inverse=True, return_counts=True)
    notes: list[str] = []
    if (large := sizes > LARGEST).any():
        notes.append(f"of queries with more than {LARGEST:,} items ({int(large.sum()):,}), so many were compared")
    used = np.minimum(sizes, LARGEST)
    drawn = np.random.default_rng(_SEED).permutation(len(codes))
    kept = drawn[: max(1, int(np.searchsorted(np.cumsum(used[drawn].astype(np.float64) ** 2 / 2), _COMPARED)))]
    if len(kept) < len(codes):
        notes.append(f"pairs of {len(kept):,} of {len(codes):,} queries were compared")
    number = np.full(len(codes), -1)
    number[np.sort(kept)] = np.arange(len(kept))
    order = np.lexsort((item, code))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    of = sizes[code[order]]
    spaced = (rank * used[code[order]]) // of != ((rank - 1) * used[code[order]]) // of
    rows = order[spaced & (number[code[order]] >= 0)]
    return item[rows], number[code[rows]], used[np.sort(kept)], notes


@jit
def _list_pairs(query: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Pairs of anchors of one query that lie in different groups."""
    n = 0
    for fill in range(2):
        first, other = np.empty(n * fill, np.int64), np.empty(n * fill, np.int64)
        n = 0
        for a in range(query.shape[0]):
            b = a + 1
            while b < query.shape[0] and query[b] == query[a]:
                if group[b] != group[a]:
                    if fill:
                        first[n], other[n] = a, b
                    n += 1
                b += 1
    return first, other


@jit
def _count_ordered(
    first: Ints,
    other: Ints,
    ends: Ints,
    there: Floats,
    here: Floats,
    low: Floats,
    high: Floats,
    query: Ints,
    sizes: Ints,
) -> tuple[int, int, int]:
    """Pairs, those in order, and queries without one that is not. `there`: d from `first` to `other`, `here` back."""
    whole = np.ones(sizes.shape[0], np.bool_)
    pairs = ordered = 0
    for k in range(first.shape[0]):
        a, b = first[k], other[k]
        found = 0
        for x in range(ends[a], ends[a + 1]):
            for y in range(ends[b], ends[b + 1]):
                if high[x] - low[y] + there[k] < 0.0 or high[y] - low[x] + here[k] < 0.0:
                    found += 1
        count = (ends[a + 1] - ends[a]) * (ends[b + 1] - ends[b])
        pairs += count
        ordered += found
        if found < count:
            whole[query[a]] = False
    return pairs, ordered, int(whole.sum())

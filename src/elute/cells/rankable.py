"""Which queries can be ranked: a query whose items lie in one component, even where the log has many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Membership
from elute.kernels.jit import jit
from elute.kernels.radix import radix_sort

Codes = NDArray[np.int32]


class Rankable(NamedTuple):
    """How much of the ranking is recoverable."""

    queries: int
    rankable: int
    """Queries all of whose items lie in one component."""
    comparable_share: float
    """Of all pairs of items of one query, the share that lies in one component; 1 where there is no pair."""

    @property
    def share(self) -> float:
        return self.rankable / self.queries


@jit
def _look(
    query: Codes, item: Codes, component_of_item: Codes, first: Codes, items: NDArray[np.int64]
) -> tuple[int, int, int, int]:
    """Queries within one component, pairs, those of them within such queries, and members of the other queries. `first`
    and `items`: by query, 0 to begin with; `first` gets its component plus one, or -1 where it has several."""
    for at in range(query.shape[0]):
        q = query[at]
        mine = component_of_item[item[at]] + 1
        items[q] += 1
        if first[q] == 0:
            first[q] = mine
        elif first[q] != mine:
            first[q] = -1
    rankable = pairs = comparable = others = 0
    for q in range(first.shape[0]):
        here = items[q] * (items[q] - 1) // 2
        pairs += here
        if first[q] > 0:
            rankable += 1
            comparable += here
        elif first[q] < 0:
            others += items[q]
    return rankable, pairs, comparable, others


@jit
def _list_members(
    query: Codes, item: Codes, component_of_item: Codes, first: Codes, bits: np.uint64, keys: NDArray[np.uint64]
) -> None:
    """`query | component` of the members of queries in several components."""
    n = 0
    for at in range(query.shape[0]):
        if first[query[at]] < 0:
            keys[n] = (np.uint64(query[at]) << bits) | np.uint64(component_of_item[item[at]])
            n += 1


@jit
def _count_alike(keys: NDArray[np.uint64]) -> int:
    """Pairs of equal ones among sorted keys."""
    pairs = alike = 0
    for at in range(1, keys.shape[0]):
        alike = alike + 1 if keys[at] == keys[at - 1] else 0
        pairs += alike
    return pairs


def count_rankable(membership: Membership, component_of_item: Codes, components: int) -> Rankable:
    """Count rankable queries and comparable pairs."""
    if components == 1:
        return Rankable(membership.queries, membership.queries, 1.0)
    members = membership.query, membership.item, component_of_item
    first, items = np.zeros(membership.queries, np.int32), np.zeros(membership.queries, np.int64)
    ranked, pairs, comparable, others = _look(*members, first, items)
    if others:
        bits = np.uint64((components - 1).bit_length())
        keys = np.empty(others, np.uint64)
        _list_members(*members, first, bits, keys)
        comparable += _count_alike(radix_sort(keys, np.empty_like(keys), int(keys.max()).bit_length()))
    return Rankable(membership.queries, ranked, comparable / pairs if pairs else 1.0)

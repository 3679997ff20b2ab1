"""Which queries can be ranked: a query whose items lie in one component, even where the log has many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Membership
from elute.kernels.jit import jit
from elute.kernels.radix import radix_sort


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
def _tally(keys: NDArray[np.uint64], bits: np.uint64) -> tuple[int, int, int]:
    """From sorted `query | component` keys: rankable queries, pairs, and pairs within a component."""
    rankable = pairs = comparable = 0
    i = 0
    while i < keys.shape[0]:
        query = keys[i] >> bits
        items = groups = 0
        while i < keys.shape[0] and keys[i] >> bits == query:
            key = keys[i]
            alike = 0
            while i < keys.shape[0] and keys[i] == key:
                alike += 1
                i += 1
            comparable += alike * (alike - 1) // 2
            items += alike
            groups += 1
        pairs += items * (items - 1) // 2
        rankable += groups == 1
    return rankable, pairs, comparable


def count_rankable(membership: Membership, component_of_item: NDArray[np.int32], components: int) -> Rankable:
    """Count rankable queries and comparable pairs."""
    if components == 1:
        return Rankable(membership.queries, membership.queries, 1.0)
    bits = np.uint64((components - 1).bit_length())
    component = component_of_item[membership.item].astype(np.uint64)
    keys = (membership.query.astype(np.uint64) << bits) | component
    keys = radix_sort(keys, np.empty_like(keys), int(keys.max()).bit_length())
    ranked, pairs, comparable = _tally(keys, bits)
    return Rankable(membership.queries, ranked, comparable / pairs if pairs else 1.0)

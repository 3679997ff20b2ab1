"""Connectivity from a stream of (item, factor) rows, and nothing else.

The table of `elute.kernels.keys` holds, for each item, the first factor it was seen under instead of a
code; every later row joins its factor with that one. So the factors of an item are joined as a star, not
as the complete graph of Algorithm 1: the components are the same, and the work is linear in the rows.
Memory: 23 to 46 bytes an item, whatever the number of cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.keys import BLOCK, EMPTY, ONE, TWO, Keys, grow_table, make_table, touch
from elute.kernels.unionfind import Parents, find_roots, link, singletons


@jit
def _connect(table: Keys, parent: Parents, keys: Keys, factors: NDArray[np.int32]) -> tuple[int, int, np.uint64]:
    """How many items were new, how many sets of factors were joined, and what `touch` asks to hand on."""
    ahead = np.uint64(0)
    mask = np.uint64(table.shape[0] // 2 - 1)
    fresh = joined = 0
    for begin in range(0, keys.shape[0], BLOCK):
        end = min(begin + BLOCK, keys.shape[0])
        ahead += touch(table, keys, begin, end)
        for i in range(begin, end):
            factor = factors[i]
            slot = keys[i] & mask
            while True:
                first = table[slot * TWO + ONE]
                if first == EMPTY:
                    table[slot * TWO] = keys[i]
                    table[slot * TWO + ONE] = np.uint64(factor + 1)
                    fresh += 1
                    break
                if table[slot * TWO] == keys[i]:
                    seen = int(first) - 1
                    if parent[seen] != parent[factor]:
                        joined += link(parent, seen, factor)
                    break
                slot = (slot + ONE) & mask
    return fresh, joined, ahead


class Connector:
    """Feed it rows, in any order and in any batches; it knows the components of the factors."""

    def __init__(self, factors: int, expected_items: int = 0) -> None:
        self.components = factors
        self._parent = singletons(factors)
        self._table = make_table(expected_items)
        self._items = 0

    def add(self, items: Keys, factors: NDArray[np.int32]) -> None:
        """Rows: a key for the item, a code for the factor."""
        self._table = grow_table(self._table, self._items, len(items))
        fresh, joined, _ = _connect(self._table, self._parent, items, factors)
        self._items += fresh
        self.components -= joined

    def roots(self) -> NDArray[np.int32]:
        """For every factor the smallest factor of its component."""
        return find_roots(self._parent)

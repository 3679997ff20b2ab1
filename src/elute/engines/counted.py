"""The cells of some items as they come from a count, and those in an order that does not depend on the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.canonical import hash_items, take_items
from elute.cells.counts import Amounts, Cells, Membership
from elute.engines.pieces import Keys

NO_KEYS: Keys = np.empty(0, np.uint64)


class CountedCells(NamedTuple):
    """Cells in the order of their items, as in `Counts`; the keys of items, and of queries where they were kept."""

    offsets: NDArray[np.int64]
    factor: NDArray[np.int32]
    impressions: Amounts
    clicks: Amounts
    membership: Membership | None
    items: Keys = NO_KEYS
    queries: Keys = NO_KEYS


def order_items(counted: CountedCells, ranges: Sequence[tuple[int, int]]) -> CountedCells:
    """With the items of each range in canonical order (`elute.cells.canonical`); others stay where they are."""
    order = np.arange(len(counted.items))
    cells = Cells(*counted[:4])
    for begin, end in ranges:
        own = hash_items(cells._replace(offsets=cells.offsets[begin : end + 1]))
        order[begin:end] = begin + np.argsort(own, kind="stable")
    members = counted.membership
    if members is not None:
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        item = place[members.item]
        rows = np.argsort(item, kind="stable")
        members = Membership(members.queries, members.query[rows], item[rows], members.impressions[rows])
    return CountedCells(*take_items(cells, order), members, counted.items[order], counted.queries)

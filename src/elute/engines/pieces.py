"""What partitions of a log's rows were counted to, piece by piece, and the pieces in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from elute._util.threads import map_threads, split_evenly
from elute.cells.counts import Amounts, Membership
from elute.kernels.keys import KeyTable, number_keys

Keys = NDArray[np.uint64]

CELLS_A_PIECE = 1 << 23
"""Room that a thread takes at a time: so much that the system has it back when it is given up."""


class Piece(NamedTuple):
    """Some items: their keys, what a row of theirs says of the query, and how many cells they have; and these."""

    items: Keys
    queries: Keys
    sizes: NDArray[np.int32]
    factor: NDArray[np.int32]
    shown: Amounts
    clicked: Amounts


class Workspace:
    """A thread's own: room for the rows of a partition, and for what many partitions have, one after the other."""

    def __init__(self, cells: int, largest: int, amount: np.dtype[Any]) -> None:
        """`cells`: for so many; `largest`: rows of the largest partition."""
        self.rows = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
        kinds = (np.uint64, np.uint64, np.int32, np.int32, amount, amount)
        self._room: list[NDArray[Any]] = [np.empty(cells, kind) for kind in kinds]
        self._items = self._cells = 0

    def has_room(self, rows: int, largest: int) -> bool:
        """For partitions of so many rows, and for the largest of them."""
        return largest <= len(self.rows[0]) and self._cells + rows <= len(self._room[0])

    @property
    def free(self) -> Piece:
        """What is not taken yet."""
        return Piece(
            *(part[self._items :] for part in self._room[:3]), *(part[self._cells :] for part in self._room[3:])
        )

    def take(self, items: int, cells: int) -> Piece:
        """The first of what is free."""
        free = self.free
        self._items += items
        self._cells += cells
        some: list[NDArray[Any]] = [*(part[:items] for part in free[:3]), *(part[:cells] for part in free[3:])]
        return Piece(*some)


def concatenate(pieces: Sequence[NDArray[Any]], kind: DTypeLike) -> NDArray[Any]:
    """On all cores."""
    ends = np.cumsum([0, *(len(piece) for piece in pieces)]).tolist()
    out = np.empty(ends[-1], kind)

    def copy(bounds: tuple[int, int]) -> None:
        for at in range(*bounds):
            out[ends[at] : ends[at + 1]] = pieces[at]

    map_threads(copy, split_evenly(len(pieces)))
    return out


def number_queries(runs: Sequence[Sequence[Keys]]) -> tuple[NDArray[np.int32], Keys]:
    """Codes of the queries of items, and the queries' keys by code. No query is in two runs of partitions; a run's
    items may come in several pieces."""

    def number(bounds: tuple[int, int]) -> list[tuple[NDArray[np.int32], Keys]]:
        out = []
        for pieces in runs[slice(*bounds)]:
            keys = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            codes, distinct = np.empty(len(keys), np.int32), np.empty(len(keys), np.uint64)
            used = number_keys(keys, codes, distinct)
            out.append((codes, distinct[:used].copy()))
        return out

    found = [one for some in map_threads(number, split_evenly(len(runs))) for one in some]
    first = np.cumsum([0, *(len(distinct) for _, distinct in found)]).tolist()
    map_threads(lambda at: np.add(found[at][0], np.int32(first[at]), out=found[at][0]), range(len(found)))
    return concatenate([one[0] for one in found], np.int32), concatenate([one[1] for one in found], np.uint64)


def join_pairs(found: Sequence[tuple[Piece, Keys]]) -> tuple[Membership, Keys]:
    """Which items were shown for which queries, of partitions of items: a query may be in several. Of each partition:
    its items' queries in the place of factors, by number, and the keys of these."""
    table, items = KeyTable(), 0
    members: list[NDArray[np.int32]] = []
    queries: list[NDArray[np.int32]] = []
    for pairs, keys in found:
        code = table.insert(keys)[0]
        n = len(pairs.sizes)
        members.append(np.repeat(np.arange(items, items + n, dtype=np.int32), pairs.sizes))
        queries.append(code[pairs.factor])
        items += n
    shown = concatenate([pairs.shown for pairs, _ in found], np.int64)
    joined = Membership(len(table), concatenate(queries, np.int32), concatenate(members, np.int32), shown)
    return joined, table.keys()

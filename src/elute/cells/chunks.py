"""Counts as they are written to disk: chunk after chunk, each with all cells of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts

CELLS_A_CHUNK, ITEMS_A_CHUNK = 4_000_000, 250_000


class Members(NamedTuple):
    """Items of a chunk that were shown for a query, and how often; queries are numbered throughout all chunks."""

    query: NDArray[np.int32]
    item: NDArray[np.int32]
    impressions: NDArray[np.int64]


class Chunk(NamedTuple):
    """Some items, with all their cells."""

    items: Callable[[], pa.Table]
    """Their columns."""
    cells: Cells
    members: Members | None


def chunks_from_counts(counts: Counts) -> Iterator[Chunk]:
    """Counts in memory."""
    whole = chunk_of(counts)
    return cut_chunks(whole.items, whole.cells, whole.members)


def chunk_of(counts: Counts) -> Chunk:
    """All of them at once."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    known, members = counts.membership, None
    if known is not None:
        members = Members(known.query, known.item, known.impressions)
        if (np.diff(known.item) < 0).any():
            order = np.argsort(known.item, kind="stable")
            members = Members(known.query[order], known.item[order], known.impressions[order])
    return Chunk(lambda: counts.items, cells, members)


def cut_chunks(names: Callable[[], pa.Table], cells: Cells, members: Members | None) -> Iterator[Chunk]:
    """In chunks that are small, whoever reads them; `members` in the order of items."""
    items, table = len(cells.offsets) - 1, cache(names)
    by_cells = np.searchsorted(cells.offsets, np.arange(CELLS_A_CHUNK, len(cells.factor), CELLS_A_CHUNK))
    bounds = np.unique(np.concatenate((np.arange(0, items, ITEMS_A_CHUNK), by_cells, [items])))
    for begin, end in pairwise(bounds.tolist()):
        inside, mine = slice(*cells.offsets[[begin, end]].tolist()), None
        if members is not None:
            ends = np.array([begin, end], members.item.dtype)  # of another type, all would be converted
            rows = slice(*np.searchsorted(members.item, ends).tolist())
            mine = Members(members.query[rows], members.item[rows] - np.int32(begin), members.impressions[rows])
        own = Cells(
            cells.offsets[begin : end + 1] - cells.offsets[begin],
            cells.factor[inside],
            cells.impressions[inside],
            cells.clicks[inside],
        )
        yield Chunk(partial(_slice_rows, table, begin, end), own, mine)


def _slice_rows(table: Callable[[], pa.Table], begin: int, end: int) -> pa.Table:
    return table().slice(begin, end - begin)

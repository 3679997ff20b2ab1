"""Counts as they are written to disk: part after part, each with all cells of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.counts import Cells, Counts

CELLS_A_PART = 4_000_000


class Members(NamedTuple):
    """Items of a part that were shown for a query, and how often; queries are numbered throughout all parts."""

    query: NDArray[np.int32]
    item: NDArray[np.int32]
    impressions: NDArray[np.int64]


class Part(NamedTuple):
    """Some items."""

    items: Callable[[], pa.Table]
    """Their columns."""
    cells: Cells
    members: Members | None


def of_counts(counts: Counts) -> Iterator[Part]:
    """Counts in memory, in parts of about `CELLS_A_PART`."""
    steps = np.arange(CELLS_A_PART, counts.n_cells, CELLS_A_PART)
    bounds = np.unique(np.concatenate(([0], np.searchsorted(counts.offsets, steps), [counts.n_items])))
    known = counts.membership
    order = np.argsort(known.item, kind="stable") if known is not None else np.empty(0, np.int64)
    for begin, end in pairwise(bounds.tolist()):
        cells = slice(*counts.offsets[[begin, end]].tolist())
        members = None
        if known is not None:
            mine = order[slice(*np.searchsorted(known.item, [begin, end], sorter=order).tolist())]
            members = Members(known.query[mine], known.item[mine] - np.int32(begin), known.impressions[mine])
        yield Part(
            partial(counts.items.slice, begin, end - begin),
            Cells(
                counts.offsets[begin : end + 1] - counts.offsets[begin],
                counts.factor[cells],
                counts.impressions[cells],
                counts.clicks[cells],
            ),
            members,
        )

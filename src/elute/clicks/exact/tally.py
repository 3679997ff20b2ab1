"""Impressions and clicks of (document, cell) pairs: all that some models need of a log of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.clicks.sessions import Sessions, SessionSource, iterate_sessions

Keys = NDArray[np.integer]

_DENSE = 1 << 26
"""Pairs up to which they are counted in an array of all of them; beyond, only those that occur are kept."""


class PairCounts(NamedTuple):
    """Sorted by document: `offsets` into the rest by document; `cell`, impressions and clicks of every pair seen."""

    offsets: Keys
    cell: Keys
    impressions: NDArray[np.float64]
    clicks: NDArray[np.float64]


def tally(source: SessionSource, documents: int, cells: int, cell_of: Callable[[Sessions], Keys]) -> PairCounts:
    """`cell_of` gives the cell of every place of some sessions; what it gives on the padding is not read."""
    size = documents * cells
    key, n, c = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    if size <= _DENSE:
        key, n, c = np.arange(size), np.zeros(size, np.int64), np.zeros(size, np.int64)
    for part in iterate_sessions(source):
        keys, clicked = part.doc * np.int64(cells) + cell_of(part), part.click != 0
        if part.length.min(initial=part.width) < part.width:
            mask = part.mask
            keys, clicked = keys[mask], clicked[mask]
        keys, clicked = keys.ravel(), clicked.ravel()
        if size <= _DENSE:
            n += np.bincount(keys, minlength=size)
            c += np.bincount(keys[clicked], minlength=size)
        else:
            merged, place = np.unique(np.concatenate((key, keys)), return_inverse=True)
            n = np.bincount(place, np.concatenate((n, np.ones(len(keys), np.int64)))).astype(np.int64)
            c = np.bincount(place, np.concatenate((c, clicked))).astype(np.int64)
            key = merged
    seen = np.flatnonzero(n)
    key = key[seen]
    offsets = np.searchsorted(key, np.arange(documents + 1, dtype=np.int64) * cells)
    return PairCounts(offsets, key % cells, n[seen].astype(np.float64), c[seen].astype(np.float64))


def sum_by_document(cells: PairCounts, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the pairs of every document; 0 where it has none."""
    sums = np.zeros(len(cells.offsets) - 1)
    some = np.flatnonzero(np.diff(cells.offsets))
    sums[some] = np.add.reduceat(values, cells.offsets[some]) if len(some) else 0.0
    return sums


def ranks_of(sessions: Sessions) -> Keys:
    """The rank, from 0, of every place."""
    return np.broadcast_to(np.arange(sessions.width), sessions.doc.shape)


def one_cell(sessions: Sessions) -> Keys:
    """The same for every place."""
    return np.zeros(sessions.doc.shape, np.int64)


def distances_of(sessions: Sessions) -> Keys:
    """How far up the last click lies, from 1, by place: rank k at most, which is also where nothing was clicked."""
    rank = np.arange(1, sessions.width + 1, dtype=np.int32)
    last = np.maximum.accumulate(np.where(sessions.clicked, rank, np.int32(0)), axis=1)
    distance = np.empty(sessions.doc.shape, np.int32)
    distance[:, 0] = 1
    distance[:, 1:] = rank[1:] - last[:, :-1]
    return distance


def browsing_cells(sessions: Sessions) -> Keys:
    """(rank, distance) as one number: the place in the lower triangle of a table by (rank, distance)."""
    rank = np.arange(sessions.width, dtype=np.int32)
    return np.asarray(rank * (rank + 1) // 2 + distances_of(sessions) - 1)


def mean_log_ranks(cells: PairCounts, rank_of: NDArray[np.integer]) -> tuple[NDArray[np.float64], float]:
    """z by document (0 where never shown), see `elute.clicks.base.ranked_prior`, and the mean over documents that it
    counts from. `rank_of`: the rank from 0, by cell."""
    shown = sum_by_document(cells, cells.impressions)
    some = shown > 0
    mean = sum_by_document(cells, cells.impressions * np.log1p(rank_of[cells.cell])) / np.maximum(shown, 1.0)
    centre = float(mean[some].mean()) if some.any() else 0.0
    return np.where(some, mean - centre, 0.0), centre

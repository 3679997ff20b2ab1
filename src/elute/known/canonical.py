"""Numbers for items and queries that do not hang on where a log was counted.

Engines hand over items in orders of their own. What is drawn at random would be drawn for others, and an error from
few draws would differ with the engine. So items are numbered by what was counted of them: by a hash of their cells.
Items with equal cells can be taken for each other. Queries are numbered by the sum of their items' hashes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.estimate.solve.problem import Codes
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit

Hashes = NDArray[np.uint64]

_ADD, _TIMES, _AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_FIRST, _SECOND, _THIRD = np.uint64(30), np.uint64(27), np.uint64(31)
"""Of splitmix64, whose steps mix one number after the other into the hash."""


def hash_items(cells: Cells) -> Hashes:
    """By item."""
    return np.concatenate(map_blocks(lambda _, own: _hash_items(own, *cells[1:]), cells.offsets))


def rank_queries(of_item: Hashes, item: Codes, query: Codes, queries: int) -> Codes:
    """By query: its number. `item`, `query`: which was shown for which."""
    return _invert(np.argsort(_sum_hashes(of_item, item, query, queries), kind="stable"))


def rank_items(of_item: Hashes) -> Codes:
    """By item: its number."""
    return _invert(np.argsort(of_item, kind="stable"))


def _invert(order: NDArray[np.int64]) -> Codes:
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


@jit
def _mix(hashed: np.uint64, value: np.uint64) -> np.uint64:
    z = hashed ^ (value + _ADD)
    z = (z ^ (z >> _FIRST)) * _TIMES
    z = (z ^ (z >> _SECOND)) * _AGAIN
    return z ^ (z >> _THIRD)


@jit
def _hash_items(offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts) -> Hashes:
    out = np.zeros(offsets.shape[0] - 1, np.uint64)
    for item in range(out.shape[0]):
        hashed = np.uint64(0)
        for cell in range(offsets[item], offsets[item + 1]):
            hashed = _mix(hashed, np.uint64(factor[cell]))
            hashed = _mix(hashed, np.uint64(impressions[cell]))
            hashed = _mix(hashed, np.uint64(clicks[cell]))
        out[item] = hashed
    return out


@jit
def _sum_hashes(of_item: Hashes, item: Codes, query: Codes, queries: int) -> Hashes:
    out = np.zeros(queries, np.uint64)
    for at in range(item.shape[0]):
        out[query[at]] += _mix(_ADD, of_item[item[at]])
    return out

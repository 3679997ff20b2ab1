"""Items in an order that does not hang on where a log was counted, nor on the keys that stood for their ids.

By a hash of what was counted of them. Items with equal cells can be taken for each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit

Hashes = NDArray[np.uint64]
Codes = NDArray[np.int32]

ADD, _TIMES, _AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_FIRST, _SECOND, _THIRD = np.uint64(30), np.uint64(27), np.uint64(31)
"""Of splitmix64, whose steps mix one number after the other into the hash."""


def hash_items(cells: Cells) -> Hashes:
    """By item."""
    return np.concatenate(map_blocks(lambda _, own: _hash_items(own, *cells[1:]), cells.offsets))


def take_items(cells: Cells, order: NDArray[np.int64]) -> Cells:
    """The cells of these items, in this order."""
    sizes = np.diff(cells.offsets)[order]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
    rows = _list_cells(cells.offsets, order, offsets)
    return Cells(offsets, cells.factor[rows], cells.impressions[rows], cells.clicks[rows])


@jit
def mix(hashed: np.uint64, value: np.uint64) -> np.uint64:
    z = hashed ^ (value + ADD)
    z = (z ^ (z >> _FIRST)) * _TIMES
    z = (z ^ (z >> _SECOND)) * _AGAIN
    return z ^ (z >> _THIRD)


@jit
def _hash_items(offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts) -> Hashes:
    out = np.zeros(offsets.shape[0] - 1, np.uint64)
    for item in range(out.shape[0]):
        hashed = np.uint64(0)
        for cell in range(offsets[item], offsets[item + 1]):
            hashed = mix(hashed, np.uint64(factor[cell]))
            hashed = mix(hashed, np.uint64(impressions[cell]))
            hashed = mix(hashed, np.uint64(clicks[cell]))
        out[item] = hashed
    return out


@jit
def _list_cells(offsets: NDArray[np.int64], order: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.empty(new[-1], np.int64)
    for place in range(order.shape[0]):
        begin = offsets[order[place]]
        for at in range(new[place], new[place + 1]):
            out[at] = begin + at - new[place]
    return out

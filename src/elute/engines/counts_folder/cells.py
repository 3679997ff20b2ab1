"""Cells as they come from disk, looked at before any other kernel sees them: those trust every number.

One pass over them checks that

- every item has as many cells as it says, and together they have all of them;
- factors rise within an item, and each is one of the log's;
- a cell was shown at least once, and clicked at most as often as it was shown;
- over all cells, there are as many impressions and clicks as `factors.parquet` says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.door.fields import Damaged
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit

_STRETCH = 4096
"""Items whose cells are looked at twice while they are at hand."""


class Sums(NamedTuple):
    """Over cells, or over the factors."""

    impressions: int = 0
    clicks: int = 0

    def add(self, other: Sums) -> Sums:
        return Sums(self.impressions + other.impressions, self.clicks + other.clicks)


def add_sizes(sizes: NDArray[np.int64], n_cells: int) -> NDArray[np.int64]:
    """The offsets of items with so many cells each."""
    low, high = int(sizes.min(initial=0)), int(sizes.max(initial=0))
    if low < 0 or high > n_cells:
        raise Damaged(f"an item has {low if low < 0 else high:,} of {n_cells:,} cells")
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] != n_cells:
        raise Damaged(f"its items have {offsets[-1]:,} cells, but there are {n_cells:,}")
    return offsets


def require_sound(cells: Cells, n_factors: int) -> Sums:
    """What these cells add up to; `Damaged` where one of them cannot be."""
    found = map_blocks(
        lambda _, own: _look(own, cells.factor, cells.impressions, cells.clicks, n_factors), cells.offsets
    )
    if any(bad or falls for bad, falls, *_ in found):
        raise _describe(cells, n_factors)
    return Sums(*(sum(int(part[place]) for part in found) for place in (2, 3)))


def _describe(cells: Cells, n_factors: int) -> Damaged:
    """The first cell that cannot be."""
    beyond = (cells.factor < 0) | (cells.factor >= n_factors)
    if beyond.any():
        return Damaged(f"a cell is of factor {int(cells.factor[beyond][0]):,}, but there are {n_factors:,}")
    never = (cells.impressions == 0) | (cells.clicks > cells.impressions)
    if never.any():
        clicked, shown = (int(part[never][0]) for part in (cells.clicks, cells.impressions))
        return Damaged(f"a cell has {clicked:,} clicks of {shown:,} impressions")
    return Damaged("the cells of an item are not in the order of their factors")


@jit
def _look(
    offsets: NDArray[np.int64], factor: NDArray[np.int32], impressions: Amounts, clicks: Amounts, n_factors: int
) -> tuple[np.uint32, int, np.uint64, np.uint64]:
    """Whether a cell cannot be, how often factors do not rise within an item, impressions and clicks."""
    bad, falls, shown, clicked = np.uint32(0), 0, np.uint64(0), np.uint64(0)
    n = offsets.shape[0] - 1
    for begin in range(0, n, _STRETCH):
        end = min(begin + _STRETCH, n)
        first, last = offsets[begin], offsets[end]
        found = _scan(factor[first:last], impressions[first:last], clicks[first:last], n_factors)
        bad |= found[0]
        falls += int(found[1])
        shown += found[2]
        clicked += found[3]
        for item in range(begin, end):  # where an item begins, factors may fall
            cell = offsets[item]
            if first < cell < offsets[item + 1] and factor[cell] <= factor[cell - 1]:
                falls -= 1
    return bad, falls, shown, clicked


@jit
def _scan(
    factor: NDArray[np.int32], impressions: Amounts, clicks: Amounts, n_factors: int
) -> tuple[np.uint32, np.int32, np.uint64, np.uint64]:
    """As `_look`, of cells whoever they belong to: without a branch, so that many are compared at a time."""
    bad, falls, shown, clicked = np.uint32(0), np.int32(0), np.uint64(0), np.uint64(0)
    known = np.uint32(n_factors)
    for cell in range(factor.shape[0]):
        bad |= (
            np.uint32(np.uint32(factor[cell]) >= known)
            | np.uint32(impressions[cell] == 0)
            | np.uint32(clicks[cell] > impressions[cell])
        )
        shown += np.uint64(impressions[cell])
        clicked += np.uint64(clicks[cell])
    for cell in range(1, factor.shape[0]):
        falls += np.int32(factor[cell] <= factor[cell - 1])
    return bad, falls, shown, clicked


def require_same(found: Sums, told: Sums) -> None:
    """`Damaged` where all cells together do not have what the factors have."""
    for name, mine, theirs in zip(Sums._fields, found, told, strict=True):
        if mine != theirs:
            raise Damaged(f"its cells have {mine:,} {name}, the factors {theirs:,}")

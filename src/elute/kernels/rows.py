"""Rows of a log on their way to cells: each goes into one of many partitions, small enough to be counted in the cache.

All rows of an item are in one partition, and where items lie within queries all rows of a query: which, its place
says, a hash that is the same in every run, as keys are not. A row takes 16 bytes: the item's key, and a word of the
query's key, the factor's code and the click. That leaves fewer bits of the query's key, but queries in other partitions
need not be told apart; where that is not enough, or a query's whole key is wanted, factor and click take 4 bytes more.
Rows that are counts take 16 more for these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Keys = NDArray[np.uint64]
Codes = NDArray[np.int32]

ROWS_IN_ONE = 1_000_000
"""Rows of a log that is one partition: its items keep the order in which they are first seen."""

ROWS_A_PARTITION = 24_576
MOST_BITS = 12
"""Of a partition's number."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_MAX = np.uint64(63)


class RowLayout(NamedTuple):
    """`bits`: of a partition's number. `code_bits`: of a factor's code and a click. `by_query`: partitions are of
    queries, not of items. `wide`: codes have an array of their own."""

    bits: int
    code_bits: int
    by_query: bool
    wide: bool

    @property
    def partitions(self) -> int:
        return 1 << self.bits


def choose_layout(rows: int, factors: int, by_query: bool, whole: bool) -> RowLayout:
    """For about so many rows. `whole`: queries' keys will be asked for, or compared across partitions."""
    bits = 0 if rows < ROWS_IN_ONE else min((rows // ROWS_A_PARTITION).bit_length(), MOST_BITS)
    code_bits = max(factors - 1, 1).bit_length() + 1
    lost = max(code_bits - bits, 0) if by_query else 0
    # Two queries of a partition that agree in what is left of their keys would be one: as rare as with whole keys, or
    # very rare.
    narrow = not whole and (lost <= 2 or rows * rows < 1 << max(44 - lost, 0))
    return RowLayout(bits, code_bits, by_query, not narrow)


class StoredRows(NamedTuple):
    """Room for rows. `codes`, `shown` and `clicked` are empty where the layout has no use for them."""

    words: Keys
    codes: NDArray[np.uint32]
    shown: NDArray[np.int64]
    clicked: NDArray[np.int64]


def make_room(rows: int, layout: RowLayout, weighted: bool) -> StoredRows:
    """The system gives memory when it is written to."""
    return StoredRows(
        np.empty(2 * rows, np.uint64),
        np.empty(rows if layout.wide else 0, np.uint32),
        np.empty(rows if weighted else 0, np.int64),
        np.empty(rows if weighted else 0, np.int64),
    )


@jit
def scatter_rows(
    item: Keys,
    query: Keys,
    places: Keys,
    factor: Codes,
    clicks: NDArray[np.uint8],
    bits: int,
    code_bits: int,
    by_query: bool,
    wide: bool,
    words: Keys,
    codes: NDArray[np.uint32],
    base: int,
    order: NDArray[np.int64],
    starts: NDArray[np.int32],
) -> bool:
    """A batch into the places from `base` on; `starts` gets where each partition begins, `order` where each row went
    (if it is not empty). `query` and `clicks` may be empty. False: a factor has no code."""
    n = item.shape[0]
    shift = _MAX - np.uint64(bits)
    place = np.zeros(1 << bits, np.int64)
    for i in range(n):
        place[((places[i] * _ODD) >> _ONE) >> shift] += 1
    total = 0
    for part in range(place.shape[0]):
        here = place[part]
        starts[part] = total
        place[part] = base + total
        total += here
    starts[place.shape[0]] = total
    known = np.uint64(code_bits)
    has_query, has_clicks = query.shape[0] > 0, clicks.shape[0] > 0
    for i in range(n):
        if factor[i] < 0:
            return False
        home = np.int64(((places[i] * _ODD) >> _ONE) >> shift)
        at = place[home]
        place[home] += 1
        code = np.uint64(factor[i]) << _ONE
        if has_clicks:
            code |= np.uint64(clicks[i])
        words[2 * at] = item[i]
        if wide:
            codes[at] = np.uint32(code)
            words[2 * at + 1] = query[i] if has_query else np.uint64(0)
        elif by_query:
            words[2 * at + 1] = (((query[i] * _ODD) >> known) << known) | code  # numbers in a row differ there, too
        else:
            words[2 * at + 1] = code
        if order.shape[0] > 0:
            order[i] = at
    return True

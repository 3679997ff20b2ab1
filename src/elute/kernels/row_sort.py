"""Numbered rows of a partition, `item | factor | click` in one word, sorted and summed to cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.rows import Keys

Amounts = NDArray[np.uint32] | NDArray[np.uint64]

_DIGIT = 13
_ONE = np.uint64(1)


@jit
def sort_rows(a: Keys, b: Keys, code_bits: int, rows_of: NDArray[np.int32]) -> Keys:
    """By item and factor; the click, in the last bit, does not count. Gives the array that holds the result."""
    bits = code_bits - 1
    passes = (bits + _DIGIT - 1) // _DIGIT
    digit = (bits + passes - 1) // passes
    radix = 1 << digit
    mask = np.uint64(radix - 1)
    begin = np.zeros((passes, radix), np.int32)
    for value in a:
        for step in range(passes):
            begin[step, (value >> np.uint64(1 + step * digit)) & mask] += 1
    for step in range(passes):
        place = begin[step]
        total = 0
        for at in range(radix):
            here = place[at]
            place[at] = total
            total += here
        shift = np.uint64(1 + step * digit)
        for value in a:
            at_digit = (value >> shift) & mask
            b[place[at_digit]] = value
            place[at_digit] += 1
        a, b = b, a
    total = 0
    for item in range(rows_of.shape[0]):
        here = rows_of[item]
        rows_of[item] = total
        total += here
    known = np.uint64(code_bits)
    for value in a:
        item_of = np.int64(value >> known)
        b[rows_of[item_of]] = value
        rows_of[item_of] += 1
    return b


@jit
def _begin_cell(
    value: np.uint64,
    known: np.uint64,
    cell: int,
    item: np.int64,
    sizes: NDArray[np.int32],
    factor: NDArray[np.int32],
    shown: Amounts,
    clicked: Amounts,
) -> np.int64:
    """A cell of nothing yet, which is its item's first or one more; the item's number."""
    factor[cell] = np.int32((value & ((_ONE << known) - _ONE)) >> _ONE)
    shown[cell] = 0
    clicked[cell] = 0
    mine = np.int64(value >> known)
    sizes[mine] = 1 if mine != item else sizes[mine] + 1
    return mine


@jit
def sum_units(
    rows: Keys,
    known: np.uint64,
    sizes: NDArray[np.int32],
    factor: NDArray[np.int32],
    shown: Amounts,
    clicked: Amounts,
) -> int:
    """Sorted rows of one impression each to cells."""
    cell, item = -1, np.int64(-1)
    last = ~np.uint64(0)
    for value in rows:
        if value >> _ONE != last:
            last = value >> _ONE
            cell += 1
            item = _begin_cell(value, known, cell, item, sizes, factor, shown, clicked)
        shown[cell] += 1
        clicked[cell] += value & _ONE
    return cell + 1


@jit
def sum_weighted(
    rows: Keys,
    order: NDArray[np.int64],
    source: NDArray[np.int64],
    row_shown: NDArray[np.int64],
    row_clicked: NDArray[np.int64],
    known: np.uint64,
    sizes: NDArray[np.int32],
    factor: NDArray[np.int32],
    shown: Amounts,
    clicked: Amounts,
) -> int:
    """Rows that are counts, visited in their order, to cells."""
    cell, item = -1, np.int64(-1)
    last = ~np.uint64(0)
    for i in order:
        if rows[i] >> _ONE != last:
            last = rows[i] >> _ONE
            cell += 1
            item = _begin_cell(rows[i], known, cell, item, sizes, factor, shown, clicked)
        shown[cell] += row_shown[source[i]]
        clicked[cell] += row_clicked[source[i]]
    return cell + 1

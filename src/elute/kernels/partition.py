"""The cells of one partition of a log's rows (`elute.kernels.rows`), counted in the cache.

Items are numbered in the order in which they are first seen; then rows are sorted by factor and by item, digit by
digit, and equal ones are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.keys import ODD, fill_table, find_slot, number_keys
from elute.kernels.row_sort import Amounts, sort_rows, sum_units, sum_weighted
from elute.kernels.rows import Keys, StoredRows
from elute.kernels.unionfind import Parents, link

_ONE = np.uint64(1)
_WHOLE = np.uint64(64)
_SLOTS = 1 << 12


@jit
def count_rows(starts: NDArray[np.int32], part: int) -> int:
    """Of a partition."""
    total = 0
    for batch in range(starts.shape[0]):
        total += starts[batch, part + 1] - starts[batch, part]
    return total


@jit
def _is_elsewhere(key: np.uint64, split: int, splits: int) -> bool:
    """Whether an item belongs to another of several splits of a partition."""
    return splits > 1 and np.int64((key * ODD) >> np.uint64(48)) % splits != split


def count_partitions(
    stored: StoredRows,
    bases: NDArray[np.int64],
    starts: NDArray[np.int32],
    parts: tuple[int, int],
    split: tuple[int, int],
    bits: int,
    code_bits: int,
    a: Keys,
    b: Keys,
    out: Sequence[NDArray[Any]],
) -> tuple[int, int]:
    """How many items and cells some consecutive partitions have; `split`: which, of so many splits of their items.
    `bits`: of a partition's number, which are then part of queries' keys. `a`, `b`: as long as a partition's rows.
    `out` gets of items their keys, the keys of their first row's query, and how many cells they have; and of cells, in
    the order of items and factors, factor, impressions and clicks."""
    return _count_partitions(*stored, bases, starts, *parts, *split, bits, code_bits, a, b, *out)


@jit
def _count_partitions(
    words: Keys,
    codes: NDArray[np.uint32],
    row_shown: NDArray[np.int64],
    row_clicked: NDArray[np.int64],
    bases: NDArray[np.int64],
    starts: NDArray[np.int32],
    begin: int,
    end: int,
    split: int,
    splits: int,
    bits: int,
    code_bits: int,
    a: Keys,
    b: Keys,
    keys: Keys,
    queries: Keys,
    sizes: NDArray[np.int32],
    factor: NDArray[np.int32],
    shown: Amounts,
    clicked: Amounts,
) -> tuple[int, int]:
    items = cells = 0
    lost = np.uint64(bits)
    for part in range(begin, end):
        found, more = _count_partition(
            words,
            codes,
            row_shown,
            row_clicked,
            bases,
            starts,
            part,
            split,
            splits,
            code_bits,
            a,
            b,
            keys[items:],
            queries[items:],
            sizes[items:],
            factor[cells:],
            shown[cells:],
            clicked[cells:],
        )
        if bits > 0:
            for item in range(items, items + found):
                queries[item] = (queries[item] >> lost) | (np.uint64(part) << (_WHOLE - lost))
        items += found
        cells += more
    return items, cells


@jit
def _count_partition(
    words: Keys,
    codes: NDArray[np.uint32],
    row_shown: NDArray[np.int64],
    row_clicked: NDArray[np.int64],
    bases: NDArray[np.int64],
    starts: NDArray[np.int32],
    part: int,
    split: int,
    splits: int,
    code_bits: int,
    a: Keys,
    b: Keys,
    keys: Keys,
    queries: Keys,
    sizes: NDArray[np.int32],
    factor: NDArray[np.int32],
    shown: Amounts,
    clicked: Amounts,
) -> tuple[int, int]:
    wide, weighted = codes.shape[0] > 0, row_shown.shape[0] > 0
    known = np.uint64(code_bits)
    code_mask = (_ONE << known) - _ONE
    slots = _SLOTS
    table = fill_table(keys, 0, slots)
    mask = np.uint64(slots - 1)
    source = np.empty(a.shape[0] if weighted or wide else 0, np.int64)
    # First all rows into one place, then one after the other: reading far away in a loop that does little else lets
    # the processor fetch ahead.
    n = 0
    for batch in range(bases.shape[0]):
        for at in range(bases[batch] + starts[batch, part], bases[batch] + starts[batch, part + 1]):
            a[n] = words[2 * at]
            b[n] = np.uint64(codes[at]) if wide else words[2 * at + 1]
            if source.shape[0] > 0:
                source[n] = at
            n += 0 if _is_elsewhere(a[n], split, splits) else 1
    items = 0
    for row in range(n):
        key = a[row]
        code = b[row] & code_mask
        slot = find_slot(key, mask)
        while table[slot] >= 0 and keys[table[slot]] != key:
            slot = (slot + _ONE) & mask
        item = table[slot]
        if item < 0:
            item = np.int32(items)
            table[slot] = item
            keys[items] = key
            queries[items] = words[2 * source[row] + 1] if wide else b[row] & ~code_mask
            sizes[items] = 0
            items += 1
            if 2 * items > slots:
                slots *= 4
                table = fill_table(keys, items, slots)
                mask = np.uint64(slots - 1)
        sizes[item] += 1
        a[row] = (np.uint64(item) << known) | code
    if weighted:
        order = np.argsort(a[:n], kind="mergesort")
        cells = sum_weighted(a, order, source, row_shown, row_clicked, known, sizes, factor, shown, clicked)
    else:
        done = sort_rows(a[:n], b[:n], code_bits, sizes[:items])
        cells = sum_units(done, known, sizes, factor, shown, clicked)
    return items, cells


@jit
def name_by_query(
    words: Keys,
    codes: NDArray[np.uint32],
    bases: NDArray[np.int64],
    starts: NDArray[np.int32],
    part: int,
    split: int,
    splits: int,
    distinct: Keys,
) -> int:
    """Put the query's number within the partition in the factor's place, so that the same counting gives which item was
    shown for which query. `distinct`, as long as the rows: the queries' keys by number. How many there are."""
    keys, places = np.empty(distinct.shape[0], np.uint64), np.empty(distinct.shape[0], np.int64)
    n = 0
    for batch in range(bases.shape[0]):
        for at in range(bases[batch] + starts[batch, part], bases[batch] + starts[batch, part + 1]):
            keys[n] = words[2 * at + 1]
            places[n] = at
            n += 0 if _is_elsewhere(words[2 * at], split, splits) else 1
    numbers = np.empty(n, np.int32)
    used = number_keys(keys[:n], numbers, distinct)
    for row in range(n):
        click = codes[places[row]] & np.uint32(1)
        codes[places[row]] = (np.uint32(numbers[row]) << np.uint32(1)) | click
    return used


@jit
def link_partition(
    words: Keys,
    codes: NDArray[np.uint32],
    bases: NDArray[np.int64],
    starts: NDArray[np.int32],
    part: int,
    code_bits: int,
    keys: Keys,
    first: NDArray[np.int32],
    parent: Parents,
) -> None:
    """Join the factors of every item of a partition. `keys`, `first`: as long as its rows."""
    wide = codes.shape[0] > 0
    code_mask = (_ONE << np.uint64(code_bits)) - _ONE
    slots = _SLOTS
    table = fill_table(keys, 0, slots)
    mask = np.uint64(slots - 1)
    items = 0
    for batch in range(bases.shape[0]):
        for at in range(bases[batch] + starts[batch, part], bases[batch] + starts[batch, part + 1]):
            key = words[2 * at]
            code = np.uint64(codes[at]) if wide else words[2 * at + 1] & code_mask
            factor = np.int64(code >> _ONE)
            slot = find_slot(key, mask)
            while table[slot] >= 0 and keys[table[slot]] != key:
                slot = (slot + _ONE) & mask
            item = table[slot]
            if item >= 0:
                if parent[first[item]] != parent[factor]:
                    link(parent, first[item], factor)
                continue
            table[slot] = items
            keys[items] = key
            first[items] = factor
            items += 1
            if 2 * items > slots:
                slots *= 4
                table = fill_table(keys, items, slots)
                mask = np.uint64(slots - 1)

"""Counting distinct (item, factor) cells: sort, then merge.

Rows become 64-bit keys `item | factor | click`. A full buffer is radix-sorted, squeezed to one record
a cell and merged into the sorted cells so far. The result comes out ordered by item, which is what
every kernel on cells wants. Against a hash table of cells this is faster (the passes are sequential),
and memory is bounded by the cells: 16 bytes each, twice during a merge, plus the buffer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Keys = NDArray[np.uint64]
Amounts = NDArray[np.uint32] | NDArray[np.uint64]

BUFFER_ROWS = 1 << 24
"""Rows sorted at a time; 32 bytes each, kept from one sort to the next (fresh memory is dear)."""

_DIGIT = 11
_ONE = np.uint64(1)


class SortedRun(NamedTuple):
    """Distinct keys in rising order, each with its impressions and clicks."""

    keys: Keys
    impressions: Amounts
    clicks: Amounts


@jit
def radix_sort(keys: Keys, scratch: Keys, bits: int) -> Keys:
    """Sort by the lowest `bits` bits (the others must be zero); returns the array holding the result."""
    passes = (bits + _DIGIT - 1) // _DIGIT
    radix = 1 << _DIGIT
    mask = np.uint64(radix - 1)
    counts = np.zeros((passes, radix), dtype=np.int64)
    for key in keys:
        for p in range(passes):
            counts[p, (key >> np.uint64(p * _DIGIT)) & mask] += 1
    for p in range(passes):
        starts = counts[p]
        total = 0
        for digit in range(radix):
            here = starts[digit]
            starts[digit] = total
            total += here
        shift = np.uint64(p * _DIGIT)
        for key in keys:
            digit_of_key = (key >> shift) & mask
            scratch[starts[digit_of_key]] = key
            starts[digit_of_key] += 1
        keys, scratch = scratch, keys
    return keys


@jit
def _squeeze_unit(keys: Keys, out_keys: Keys, impressions: Amounts, clicks: Amounts) -> int:
    """Sorted `cell | click` keys of single impressions to one record a cell."""
    n = -1
    for i in range(keys.shape[0]):
        cell = keys[i] >> _ONE
        if n < 0 or out_keys[n] != cell:
            n += 1
            out_keys[n] = cell
            impressions[n] = 0
            clicks[n] = 0
        impressions[n] += 1
        clicks[n] += keys[i] & _ONE
    return n + 1


@jit
def _squeeze_weighted(
    keys: Keys,
    order: NDArray[np.int64],
    row_impressions: NDArray[np.int64],
    row_clicks: NDArray[np.int64],
    out_keys: Keys,
    impressions: Amounts,
    clicks: Amounts,
) -> int:
    """Rows that are counts already, visited in the order that sorts their keys, to one record a cell."""
    n = -1
    for i in order:
        if n < 0 or out_keys[n] != keys[i]:
            n += 1
            out_keys[n] = keys[i]
            impressions[n] = 0
            clicks[n] = 0
        impressions[n] += row_impressions[i]
        clicks[n] += row_clicks[i]
    return n + 1


@jit
def _count_union(a: Keys, b: Keys) -> int:
    """How many distinct keys two runs hold together."""
    i = j = n = 0
    while i < a.shape[0] and j < b.shape[0]:
        x = a[i]
        y = b[j]
        i += x <= y
        j += y <= x
        n += 1
    return n + (len(a) - i) + (len(b) - j)


@jit
def _merge(
    a: Keys,
    a_impressions: Amounts,
    a_clicks: Amounts,
    b: Keys,
    b_impressions: Amounts,
    b_clicks: Amounts,
    out: Keys,
    impressions: Amounts,
    clicks: Amounts,
) -> None:
    """Two runs into one. No branch to mispredict: both sides are read, and each counts or not."""
    i = j = n = 0
    while i < a.shape[0] and j < b.shape[0]:
        x = a[i]
        y = b[j]
        take_a = np.uint64(x <= y)
        take_b = np.uint64(y <= x)
        out[n] = min(x, y)
        impressions[n] = take_a * a_impressions[i] + take_b * b_impressions[j]
        clicks[n] = take_a * a_clicks[i] + take_b * b_clicks[j]
        i += x <= y
        j += y <= x
        n += 1
    for rest in range(i, a.shape[0]):
        out[n] = a[rest]
        impressions[n] = a_impressions[rest]
        clicks[n] = a_clicks[rest]
        n += 1
    for rest in range(j, b.shape[0]):
        out[n] = b[rest]
        impressions[n] = b_impressions[rest]
        clicks[n] = b_clicks[rest]
        n += 1


@jit
def _split(keys: Keys, shift: np.uint64, offsets: NDArray[np.int64], minors: NDArray[np.int32]) -> None:
    """Sorted keys to the offsets of each major's cells, and the cells' minors."""
    mask = (_ONE << shift) - _ONE
    major = 0
    for cell in range(keys.shape[0]):
        while major <= np.int64(keys[cell] >> shift):
            offsets[major] = cell
            major += 1
        minors[cell] = np.int32(keys[cell] & mask)
    for rest in range(major, offsets.shape[0]):
        offsets[rest] = keys.shape[0]


def _merge_runs(a: SortedRun, b: SortedRun) -> SortedRun:
    n = _count_union(a.keys, b.keys)
    merged = SortedRun(np.empty(n, np.uint64), np.empty(n, a.impressions.dtype), np.empty(n, a.clicks.dtype))
    _merge(*a, *b, *merged)
    return merged


class CellCounter:
    """Sums impressions and clicks of the pairs (major, minor) it is fed, batch by batch."""

    def __init__(self, minors: int, rows: int, impressions: int) -> None:
        """`minors`: how many minor codes there are. `rows`: how many rows will come. `impressions`: how
        many those stand for, which decides the width of a count."""
        self._shift = np.uint64(max(minors - 1, 1).bit_length())
        self._amount = np.dtype(np.uint32 if impressions < 1 << 32 else np.uint64)
        size = min(BUFFER_ROWS, rows)
        self._buffer: Keys = np.empty(size, np.uint64)
        self._scratch: Keys = np.empty(size, np.uint64)
        self._squeezed = self._new_run(size)
        self._filled = 0
        self._runs: list[SortedRun] = []

    def add(
        self,
        majors: NDArray[np.int32],
        minors: NDArray[np.int32],
        clicks: NDArray[np.uint8] | NDArray[np.int64],
        impressions: NDArray[np.int64] | None = None,
    ) -> None:
        """One impression a row and 0 or 1 clicks, or counts of both."""
        keys = (majors.astype(np.uint64) << self._shift) | minors.astype(np.uint64)
        if impressions is not None:
            order = np.argsort(keys, kind="stable")
            run = self._new_run(len(keys))
            self._push(run, _squeeze_weighted(keys, order, impressions, clicks.astype(np.int64), *run))
            return
        keys = (keys << _ONE) | clicks.astype(np.uint64)
        while len(keys):
            if self._filled == len(self._buffer):
                self._flush()
            part = keys[: len(self._buffer) - self._filled]
            self._buffer[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            keys = keys[len(part) :]

    def finish(self, majors: int) -> tuple[NDArray[np.int64], NDArray[np.int32], Amounts, Amounts]:
        """Cells ordered by (major, minor): offsets of each major's cells, minors, impressions, clicks."""
        self._flush()
        del self._buffer, self._scratch, self._squeezed
        while len(self._runs) > 1:
            self._runs.append(_merge_runs(self._runs.pop(), self._runs.pop()))
        keys, impressions, clicks = self._runs.pop() if self._runs else self._new_run(0)
        offsets = np.empty(majors + 1, np.int64)
        factors = np.empty(len(keys), np.int32)
        _split(keys, self._shift, offsets, factors)
        return offsets, factors, impressions, clicks

    def _new_run(self, n: int) -> SortedRun:
        return SortedRun(np.empty(n, np.uint64), np.empty(n, self._amount), np.empty(n, self._amount))

    def _flush(self) -> None:
        keys = self._buffer[: self._filled]
        self._filled = 0
        if len(keys):
            ordered = radix_sort(keys, self._scratch[: len(keys)], int(keys.max()).bit_length())
            self._push(self._squeezed, _squeeze_unit(ordered, *self._squeezed))

    def _push(self, run: SortedRun, n: int) -> None:
        """Keep the first `n` records of `run`; runs of like size are merged, so that a record is moved
        about log₂(runs) times."""
        fresh = SortedRun(run.keys[:n], run.impressions[:n], run.clicks[:n])
        if not self._runs or len(self._runs[-1].keys) > 2 * n:
            fresh = SortedRun(fresh.keys.copy(), fresh.impressions.copy(), fresh.clicks.copy())
        while self._runs and len(self._runs[-1].keys) <= 2 * len(fresh.keys):
            fresh = _merge_runs(self._runs.pop(), fresh)
        self._runs.append(fresh)

"""Supports: the sets of factors under which items were shown.

What a log can determine depends on supports alone, so a million items cost what their distinct supports cost.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Ids = Sequence[Hashable] | ArrayLike


class Supports(NamedTuple):
    """Distinct supports: number i owns the factors `offsets[i]` to `offsets[i + 1]`, rising."""

    offsets: Ints
    factor: Codes
    items: Ints
    """How many items have this support."""


def encode(ids: Ids, what: str) -> tuple[Ints, list[Hashable]]:
    """Codes from 0 for some ids, and the id behind every code. Ids of a list keep their types: 1 is not "1"."""
    if isinstance(ids, list | tuple):
        return _encode_in_order(ids, what)
    array = np.asarray(ids)
    if array.ndim != 1:
        raise EluteError(f"{what} must be a flat array of ids, one for each cell; this one has {array.ndim} dimensions")
    if array.dtype == object:
        return _encode_in_order(array.tolist(), what)
    labels, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.int64), labels.tolist()


def _encode_in_order(ids: Sequence[Hashable], what: str) -> tuple[Ints, list[Hashable]]:
    code: dict[Hashable, int] = {}
    try:
        codes = np.fromiter((code.setdefault(value, len(code)) for value in ids), np.int64, len(ids))
    except TypeError:
        raise EluteError(f"{what} contains an id that cannot be hashed; give numbers, strings or tuples") from None
    return codes, list(code)


def sort_cells(item: Ints, factor: Ints, n_items: int, n_factors: int) -> tuple[Ints, Codes]:
    """Offsets by item and rising factor codes of the distinct cells."""
    cells = np.sort(item * n_factors + factor)
    distinct = cells[np.diff(cells, prepend=-1) != 0]
    offsets = np.searchsorted(distinct, np.arange(n_items + 1) * n_factors)
    return offsets.astype(np.int64), (distinct % n_factors).astype(np.int32)


def group_supports(offsets: Ints, factor: Codes) -> Supports:
    """The distinct supports of items with rising factors.

    Items are sorted by a hash of their support, then compared one by one with the support before them: a
    collision can only list a support twice, which changes no result.
    """
    order = np.lexsort((_hash_supports(offsets, factor), np.diff(offsets)))
    first, items = _find_runs(offsets, factor, order)
    lengths = np.diff(offsets)[first]
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return Supports(starts, _gather(offsets, factor, first, starts), items)


@jit
def _hash_supports(offsets: Ints, factor: Codes) -> NDArray[np.uint64]:
    """A 64-bit hash of every item's support: its factors, each mixed (SplitMix64), added up."""
    out = np.zeros(offsets.shape[0] - 1, np.uint64)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            z = np.uint64(factor[cell] + 1) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out[item] += z ^ (z >> np.uint64(31))
    return out


@jit
def _find_runs(offsets: Ints, factor: Codes, order: Ints) -> tuple[Ints, Ints]:
    """The first item of every run of equal supports in `order`, and the run's length."""
    first, items = np.empty_like(order), np.zeros_like(order)
    n = 0
    for item in order:
        begin, end = offsets[item], offsets[item + 1]
        same = n > 0 and offsets[first[n - 1] + 1] - offsets[first[n - 1]] == end - begin
        if same:
            before = offsets[first[n - 1]]
            for cell in range(end - begin):
                if factor[before + cell] != factor[begin + cell]:
                    same = False
                    break
        if not same:
            first[n] = item
            n += 1
        items[n - 1] += 1
    return first[:n], items[:n]


@jit
def _gather(offsets: Ints, factor: Codes, chosen: Ints, starts: Ints) -> Codes:
    """The factors of the chosen items, one after the other."""
    out = np.empty(starts[-1], np.int32)
    for at in range(chosen.shape[0]):
        out[starts[at] : starts[at + 1]] = factor[offsets[chosen[at]] : offsets[chosen[at] + 1]]
    return out

"""Items whose cells are the same: what is costly and depends on an item's cells alone is computed once for all of them.
In long tails most items were shown once or twice, and a tenth of them stand for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute._util.threads import map_threads, split_evenly
from elute.kernels.jit import jit
from elute.kernels.keys import Keys, KeyTable

Offsets = NDArray[np.int64]
Codes = NDArray[np.int32]
Amounts = NDArray[np.uint32] | NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

_MANY = 1_000_000
_PARTS, _TOP = 16, np.uint64(60)
"""Of many items, parts that are grouped side by side; how many there are decides the order of what comes out."""


def group_equal_items(
    offsets: Offsets, factor: Codes, impressions: Amounts, clicks: Amounts, items: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Codes]:
    """Items that stand for others, and for each of `items` the place of the one that stands for it."""
    given = offsets, factor, impressions, clicks
    if len(items) < _MANY:
        return group_by_keys(*given, items, _hash_cells(*given, items))
    keys = np.concatenate(map_threads(lambda own: _hash_cells(*given, items[slice(*own)]), split_evenly(len(items))))
    code = np.empty(len(items), np.int32)

    def group(part: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Codes]:
        """Items whose hash begins with these bits: those that are equal have it in common."""
        rows = _list_rows(keys, np.uint64(part))
        return rows, *group_by_keys(*given, items[rows], keys[rows])

    found, before = map_threads(group, range(_PARTS)), 0
    for rows, first, own in found:
        code[rows] = own + np.int32(before)
        before += len(first)
    return np.concatenate([first for _, first, _ in found]), code


def group_by_keys(
    offsets: Offsets, factor: Codes, impressions: Amounts, clicks: Amounts, items: NDArray[np.int64], keys: Keys
) -> tuple[NDArray[np.int64], Codes]:
    """As `group_equal_items`, by `keys`: equal cells must have equal ones; different cells that do stand for
    themselves."""
    code, fresh = KeyTable().insert(keys)
    first = items[fresh]
    other = np.flatnonzero(_differ(offsets, factor, impressions, clicks, items, first[code]))
    code[other] = len(first) + np.arange(len(other), dtype=np.int32)
    return np.concatenate((first, items[other])), code


@jit
def _list_rows(keys: Keys, part: np.uint64) -> NDArray[np.int64]:
    out = np.empty(keys.shape[0], np.int64)
    n = 0
    for i in range(keys.shape[0]):
        out[n] = i
        n += keys[i] >> _TOP == part
    return out[:n].copy()


@jit
def _hash_cells(
    offsets: Offsets, factor: Codes, impressions: Amounts, clicks: Amounts, items: NDArray[np.int64]
) -> Keys:
    out = np.empty(items.shape[0], np.uint64)
    for i in range(items.shape[0]):
        z = _ODD
        for cell in range(offsets[items[i]], offsets[items[i] + 1]):
            for value in (np.uint64(factor[cell]), np.uint64(impressions[cell]), np.uint64(clicks[cell])):
                z = (z ^ value) * _ODD
                z ^= z >> _SHIFT
        out[i] = z
    return out


@jit
def _differ(
    offsets: Offsets,
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    items: NDArray[np.int64],
    others: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether an item's cells are not those of the other."""
    out = np.zeros(items.shape[0], np.bool_)
    for i in range(items.shape[0]):
        a, b = offsets[items[i]], offsets[others[i]]
        n = offsets[items[i] + 1] - a
        if n != offsets[others[i] + 1] - b:
            out[i] = True
            continue
        for k in range(n):
            if (
                factor[a + k] != factor[b + k]
                or impressions[a + k] != impressions[b + k]
                or clicks[a + k] != clicks[b + k]
            ):
                out[i] = True
                break
    return out

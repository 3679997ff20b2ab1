"""Applying plans to cells: factors that share one propensity become one, cells that were shown are added.

Merging is transitive: a chain of pairs ends in one group (section 4.2; after one hop only, as in the
paper's code, most components would stay apart).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, join_edges, singletons

Amount = TypeVar("Amount", bound=np.unsignedinteger)


def merge_factors(n_factors: int, pairs: NDArray[np.integer]) -> NDArray[np.int32]:
    """The merged factor of every factor: codes 0, 1, 2, … in the order of the groups' smallest members."""
    parent = singletons(n_factors)
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    join_edges(parent, ends[:, 0], ends[:, 1])
    return np.unique(find_roots(parent), return_inverse=True)[1].astype(np.int32)


@jit
def _merge(
    offsets: NDArray[np.int64],
    merged: NDArray[np.int32],
    impressions: NDArray[Amount],
    clicks: NDArray[Amount],
    out_offsets: NDArray[np.int64],
    out_factor: NDArray[np.int32],
    out_impressions: NDArray[Amount],
    out_clicks: NDArray[Amount],
) -> None:
    n = 0
    for item in range(offsets.shape[0] - 1):
        begin = offsets[item]
        out_offsets[item] = n
        codes = merged[begin : offsets[item + 1]]
        for k in np.argsort(codes):
            if n == out_offsets[item] or out_factor[n - 1] != codes[k]:
                out_factor[n] = codes[k]
                out_impressions[n] = 0
                out_clicks[n] = 0
                n += 1
            out_impressions[n - 1] += impressions[begin + k]
            out_clicks[n - 1] += clicks[begin + k]
    out_offsets[-1] = n


def merge_cells(
    offsets: NDArray[np.int64],
    factor: NDArray[np.int32],
    impressions: NDArray[Amount],
    clicks: NDArray[Amount],
    codes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Amount], NDArray[Amount]]:
    """Cells under the merged factors `codes`: those of one item that fall together are summed.

    The cells of an item come out by factor. Counts keep their width, which must hold an item's sum.
    """
    out = (np.empty_like(offsets), np.empty_like(factor), np.empty_like(impressions), np.empty_like(clicks))
    _merge(offsets, codes[factor], impressions, clicks, *out)
    n = out[0][-1]
    return out[0], out[1][:n].copy(), out[2][:n].copy(), out[3][:n].copy()


CellArrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Amount], NDArray[Amount]]


def add_cells(
    cells: CellArrays[Amount],
    item: NDArray[np.int64],
    factor: NDArray[np.int64],
    impressions: NDArray[np.int64],
    clicks: NDArray[np.int64],
) -> CellArrays[Amount]:
    """Cells with more impressions and clicks: those of known cells are added to them, others are new."""
    offsets, known, shown, clicked = cells
    items = np.concatenate((np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), item))
    factors = np.concatenate((known.astype(np.int64), factor))
    order = np.lexsort((factors, items))
    items, factors = items[order], factors[order]
    first = np.flatnonzero(np.r_[True, (np.diff(items) != 0) | (np.diff(factors) != 0)])
    totals = [
        np.add.reduceat(np.concatenate((old.astype(np.int64), new))[order], first)
        for old, new in ((shown, impressions), (clicked, clicks))
    ]
    starts = np.searchsorted(items[first], np.arange(len(offsets)))
    width = shown.dtype if totals[0].max() <= np.iinfo(shown.dtype).max else np.dtype(np.uint64)
    return (
        starts.astype(np.int64),
        factors[first].astype(np.int32),
        totals[0].astype(width),
        totals[1].astype(width),
    )

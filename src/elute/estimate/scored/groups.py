"""Rows of scores brought together: by codes, by what they share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from elute.estimate.scored.conditional import add_up
from elute.estimate.scored.rows import ScoredRows

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def sum_by(
    codes: tuple[Codes, ...], sizes: tuple[int, ...], rows: ScoredRows
) -> tuple[tuple[Codes, ...], Floats, Floats]:
    """Rows that agree in all codes as one; `sizes`: of all codes but the first."""
    key = codes[0]
    for code, size in zip(codes[1:], sizes, strict=True):
        key = key * size + code
    each, at = np.unique(key, return_inverse=True)
    shown, clicked = (add_up(at.reshape(-1), part) for part in (rows.shown, rows.clicked))
    parts = []
    for size in reversed(sizes):
        each, last = np.divmod(each, size)
        parts.append(last)
    return (each, *reversed(parts)), shown, clicked


def keep_sharing(group: Codes, clicked: Floats) -> NDArray[np.bool_]:
    """Rows of groups that have clicks to share among two rows or more."""
    return np.asarray((np.bincount(group)[group] > 1) & (np.bincount(group, clicked)[group] > 0))


def one_hot(code: Codes, size: int) -> sparse.csr_array:
    """A row for each code, with 1 in its column."""
    return sparse.csr_array((np.ones(len(code)), (np.arange(len(code)), code)), (len(code), size))

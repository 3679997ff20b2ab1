"""A guess at how parts compare before anything is shown: examination is taken to fall evenly.

Parts that no chain of clicks ties have no common scale. Where they lie at different positions, to take neighbours for
equal would be to say that examination falls everywhere but at the border. So parts are put where the curve of log o
over positions bends least: offsets a of parts minimise

    Σ (s(k+1) - s(k))² / (c + noise) + Σ (y(k+1) - y(k))² / (1 + noise),    y = log o + a(part),

over neighbours in position, with s the slope between two of them, and over factors of one position that differ in their
other columns (second sum only). Noise is the variance of y, about 1/clicks. Where no slope is known, as with lone
positions, the second sum is left: neighbours are alike.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BEND = 0.02
"""Variance of a difference of two slopes, beforehand; that of a step is 1."""


def align_parts(o: Floats, clicks: Floats, part: Ints, curve: Ints, position: Floats) -> Floats:
    """Propensities at one scale. `part`: of every factor; `curve`: factors that differ in their position alone."""
    seen = np.flatnonzero((o > 0) & (clicks > 0))
    y, noise = np.log(o[seen]), 1 / clicks[seen]
    along = np.lexsort((position[seen], curve[seen]))
    across = np.lexsort((curve[seen], position[seen]))
    steps, slopes = _pair(along, curve[seen]), _pair(across, position[seen])
    rows = [_weigh([a, b], [-1.0, 1.0], 1.0, noise) for a, b in np.concatenate((steps, slopes))]
    for (a, b), (same, c) in itertools.pairwise(steps):
        if b == same:
            x = position[seen[[a, b, c]]]
            left, right = 1 / (x[1] - x[0]), 1 / (x[2] - x[1])
            rows.append(_weigh([a, b, c], [left, -left - right, right], _BEND, noise))
    moved = np.exp(y + _solve(rows, y, part[seen])[part[seen]])
    out = np.zeros_like(o)
    out[seen] = moved / moved.max(initial=1e-300)
    return out


def _pair(order: Ints, group: NDArray[np.generic]) -> Ints:
    """Neighbours of a group in this order."""
    same = group[order[:-1]] == group[order[1:]]
    return np.column_stack((order[:-1][same], order[1:][same]))


def _weigh(
    factors: list[int], weights: list[float], variance: float, noise: Floats
) -> tuple[list[int], NDArray[np.float64]]:
    """A sum that is to be near 0, over its standard deviation."""
    w = np.array(weights)
    return factors, w / np.sqrt(variance + w**2 @ noise[factors])


def _solve(rows: list[tuple[list[int], Floats]], y: Floats, part: Ints) -> Floats:
    """The offset of every part."""
    at = np.repeat(np.arange(len(rows)), [len(factors) for factors, _ in rows])
    factor = np.concatenate([np.empty(0, np.int64), *(np.array(factors) for factors, _ in rows)])
    w = np.concatenate([np.empty(0), *(weights for _, weights in rows)])
    shape = len(rows), int(part.max(initial=0)) + 1
    matrix = csr_array((w, (at, part[factor])), shape=shape)
    return np.asarray(lsqr(matrix, -np.bincount(at, w * y[factor], len(rows)), atol=1e-10, btol=1e-10)[0])

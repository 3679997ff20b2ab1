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
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

from elute.identify.effects.classes import root_classes
from elute.identify.effects.design import find_design
from elute.kernels.forest import spanning_edges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BEND = 0.02
"""Variance of a difference of two slopes, beforehand; that of a step is 1."""

_DENSE = 1_000
"""Effects up to which what is open about them is found; beyond, neighbours are alike as merging has made them."""

_OPEN = 1e-9


def find_ways(part: Ints, factors: pa.Table) -> csr_array:
    """By factor, what may be added to its logarithm without contradicting anything known, one column a way: one number
    a part. Where a formula ties factors, X·β for every β that leaves all ratios within parts as they are."""
    design = find_design(factors)
    n = len(part)
    if design is None:
        return csr_array((np.ones(n), (np.arange(n), part)))
    if design.size > _DENSE:
        return csr_array((n, 1))
    x, links = design.matrix, spanning_edges(root_classes(part))
    known = csr_array(x[links[:, 1]] - x[links[:, 0]])
    value, vector = np.linalg.eigh((known.T @ known).toarray())
    return csr_array(x @ vector[:, value <= _OPEN * max(float(value.max(initial=0.0)), 1.0)])


def align_parts(o: Floats, clicks: Floats, ways: csr_array, curve: Ints, position: Floats) -> Floats:
    """Propensities at one scale. `ways`: by factor, what may be added to its logarithm (`find_ways`); `curve`: factors
    that differ in their position alone."""
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
    moved = np.exp(y + _solve(rows, y, csr_array(ways[seen])))
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


def _solve(rows: list[tuple[list[int], Floats]], y: Floats, ways: csr_array) -> Floats:
    """What is added to every factor."""
    at = np.repeat(np.arange(len(rows)), [len(factors) for factors, _ in rows])
    factor = np.concatenate([np.empty(0, np.int64), *(np.array(factors) for factors, _ in rows)])
    w = np.concatenate([np.empty(0), *(weights for _, weights in rows)])
    sums = csr_array((w, (at, factor)), shape=(len(rows), len(y)))
    return np.asarray(ways @ lsqr(csr_array(sums @ ways), -(sums @ y), atol=1e-10, btol=1e-10)[0])

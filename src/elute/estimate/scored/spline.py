"""A smooth function of a score: cubic B-splines over bins of it, with a penalty on second differences (P-splines).

Knots are even on a scale halfway between the score and its rank: on the score's own, one outlier would have most of
them; on that of ranks, what is smooth in a score with long tails would not be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

BINS = 400
"""Scores beyond so many are counted together with their neighbours, an equal share of impressions in each."""

_PIECES, _DEGREE = 20, 3


class ScoreBins(NamedTuple):
    """`bin`: by row. `centre`: by bin, the mean scores of its impressions. `basis`: by bin and coefficient, the first
    coefficient of each score, which only sets the level, left out. `penalty`: the quadratic form of second
    differences."""

    bin: Codes
    centre: Floats
    basis: Floats
    penalty: Floats


def bin_scores(score: Floats, shown: Floats) -> ScoreBins:
    """Bins of scores, by row and column, each of two values at least. Of several columns a bin is one of each, and
    their splines add up."""
    parts = [_bin_column(column, shown) for column in score.T]
    if len(parts) == 1:
        return parts[0]
    each, at = np.unique(np.stack([one.bin for one in parts]), axis=1, return_inverse=True)
    basis, centre = (
        np.hstack([getattr(one, name)[own] for one, own in zip(parts, each, strict=True)])
        for name in ("basis", "centre")
    )
    return ScoreBins(at.reshape(-1), centre, basis, block_diag(*(one.penalty for one in parts)))


def _bin_column(score: Floats, shown: Floats) -> ScoreBins:

    value, at = np.unique(score, return_inverse=True)
    weight = np.bincount(at, shown)
    below = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(value) > BINS:
        group = np.unique((below * BINS).astype(np.int64), return_inverse=True)[1]
    else:
        group = np.arange(len(value))
    total = np.bincount(group, weight)
    centre = np.bincount(group, weight * value) / total
    rank = np.bincount(group, weight * below) / total
    low, high = np.interp((0.001, 0.999), rank, centre)
    along = np.clip((centre - low) / (high - low), 0, 1) if high > low else rank
    place = (along + rank) / 2
    basis = _evaluate((place - place[0]) / (place[-1] - place[0]))
    second = np.diff(np.eye(basis.shape[1]), 2, axis=0)[:, 1:]
    return ScoreBins(group[at.reshape(-1)], centre[:, None], basis[:, 1:], second.T @ second)


def _evaluate(place: Floats) -> Floats:
    """Cubic B-splines with even knots over [0, 1]."""
    from scipy.interpolate import BSpline  # slow to import

    knots = np.arange(-_DEGREE, _PIECES + _DEGREE + 1) / _PIECES
    inside = np.clip(place, 0, 1 - 1e-12)
    return np.asarray(BSpline.design_matrix(inside, knots, _DEGREE).toarray(), np.float64)

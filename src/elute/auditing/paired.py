"""Means by query with an interval, and whether two models differ: queries are what is drawn, not impressions.

The mean of a ratio Σ v / Σ n over queries has the variance Σ (v - n·mean)² / (Σ n)², times Q/(Q - 1); tests and
intervals use Student's t with Q - 1 degrees of freedom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A mean with what holds it with 95% confidence; NaN where one query says nothing of the others."""

    mean: float
    low: float
    high: float


def mean_by_query(values: Floats, weights: Floats | None = None) -> Interval:
    """Sums by query over what they are of (1 where that is not given); queries that are NaN do not count."""
    mean, error, queries = _measure(values, weights)
    reach = float(stdtrit(queries - 1, 0.975)) * error if queries > 1 else float("nan")
    return Interval(mean, mean - reach, mean + reach)


def compute_p_value(first: Floats, second: Floats, weights: Floats | None = None) -> float:
    """Two-sided p-value of "the same mean", paired by query."""
    mean, error, queries = _measure(first - second, weights)
    if queries < 2 or np.isnan(mean) or mean == 0:
        return 1.0
    return float(2 * stdtr(queries - 1, -abs(mean) / error)) if error > 0 else 0.0


def _measure(values: Floats, weights: Floats | None) -> tuple[float, float, int]:
    """The mean, its standard error, and the queries that it is over."""
    weight = np.ones(len(values)) if weights is None else weights
    counts = ~np.isnan(values) & (weight > 0)
    v, n = values[counts], weight[counts]
    if not len(v):
        return float("nan"), float("nan"), 0
    mean = v.sum() / n.sum()
    spread = np.sum((v - n * mean) ** 2) * len(v) / max(len(v) - 1, 1)
    return float(mean), float(np.sqrt(spread) / n.sum()), len(v)

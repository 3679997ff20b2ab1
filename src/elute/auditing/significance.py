"""Are two systems different: by query (Fisher's randomisation test) or by run (Welch's t test)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elute.errors import EluteError

_BLOCK = 1 << 22
"""Signs drawn at a time."""


class Difference(NamedTuple):
    """Mean of the first less the mean of the second, and the two-sided p-value of "no difference"."""

    difference: float
    p_value: float


def fisher_randomisation(a: ArrayLike, b: ArrayLike, *, permutations: int = 9_999, seed: int = 0) -> Difference:
    """Paired by query: were the two systems' names swapped at random in every query, how often is it as large?

    Up to 2^queries ≤ `permutations` every swap is tried and the p-value exact; beyond, it is that of random swaps,
    the observed one counted among them, so that it is never 0. Queries that are NaN in either are left out.
    """
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise EluteError(f"both systems must have one value for each query; they have {x.shape} and {y.shape}")
    d = (x - y)[~np.isnan(x - y)]
    if len(d) == 0:
        raise EluteError("no query has a value under both systems")
    observed = abs(d.sum())
    close = observed - 1e-12 * np.abs(d).sum()
    if 2 ** len(d) <= permutations:
        signs = 1 - 2 * (np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1)
        p = float(np.mean(np.abs(signs @ d) >= close))
    else:
        rng, at_least, left = np.random.default_rng(seed), 0, permutations
        while left:
            rows = min(left, max(1, _BLOCK // len(d)))
            swapped = np.unpackbits(rng.integers(0, 256, (rows, (len(d) + 7) // 8), np.uint8), axis=1, count=len(d))
            at_least += int(np.sum(np.abs(d.sum() - 2 * (swapped @ d)) >= close))
            left -= rows
        p = (1 + at_least) / (1 + permutations)
    return Difference(float(d.mean()), p)


def welch(a: ArrayLike, b: ArrayLike, *, comparisons: int = 1) -> Difference:
    """Welch's t test of two samples of unequal variance; p times `comparisons` (Bonferroni), at most 1."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if min(len(x), len(y)) < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise EluteError("Welch's test needs at least two finite values of each system")
    difference = float(x.mean() - y.mean())
    if np.ptp(x) == 0 and np.ptp(y) == 0:
        return Difference(difference, float(difference == 0))
    from scipy.stats import ttest_ind  # slow to import

    p = float(ttest_ind(x, y, equal_var=False).pvalue)
    return Difference(difference, min(1.0, p * comparisons))

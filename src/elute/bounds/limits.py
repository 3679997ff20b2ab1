"""Confidence limits that hold together: exact ones for clicks, and for ratios of propensities by their errors.

The 5% that may fail are split in three: ratios of propensities, click rates of factors, items. Within each they are
divided over all limits that are taken (Bonferroni), so all hold at once with 95% confidence; over items in proportion
to impressions, which clicks do not decide: an item shown once has nothing to say whatever its share.

- **Clicks.** C clicks in N impressions of different probabilities have their sum λ within Clopper and Pearson's limits
  for N equal ones (Hoeffding, 1956: of all sums of N trials with this λ, equal ones have the heaviest tails). Where
  clicks vary more than independent ones, by the dispersion d, limits are those of C/d in N/d, times d.
- **Ratios.** A log ratio with standard error s is as sure as the logarithm of a count of 1/s² clicks. Its interval is ±
  the farther of that count's exact limits: ± z·s where clicks are many, and wider where they are few, as logarithms
  of small counts are skew. Where clusters are few, or errors are drawn, z is Student's quantile.
- **Never clicked.** Items with clicks elsewhere, C at exposures E, shown n times in vain under factor t: given their
  clicks, none falls there with probability Π (1 + u·n/E)^-C, u = o(t) relative to that scale. The limit of u is where
  that is the chance of error; relevance has no part in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaincinv, ndtr, ndtri, stdtrit

from elute.estimate.solve.problem import Floats

CONFIDENCE = 0.95
SHARE = (1.0 - CONFIDENCE) / 3
"""Of the chance of error, for each of: ratios, click rates, items."""

_HALVINGS = 60


def limit_clicks(
    clicks: Floats, impressions: Floats, dispersion: Floats | float, error: Floats | float
) -> tuple[Floats, Floats]:
    """Lower and upper limit of expected clicks; each fails with probability `error`."""
    c, n = clicks / dispersion, impressions / dispersion
    rest = np.maximum(n - c, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(clicks > 0, betaincinv(np.maximum(c, 1e-300), rest + 1.0, error), 0.0)
        high = np.where(rest > 0, betaincinv(c + 1.0, np.maximum(rest, 1e-300), 1.0 - np.asarray(error)), 1.0)
    return np.asarray(low * impressions), np.asarray(high * impressions)


def find_quantile(error: float, clusters: int | None, draws: int | None) -> float:
    """How many standard errors a log ratio may be off on one side. `clusters`: that errors were taken from, by which
    they are widened to 95% intervals already; `draws`: that errors were drawn from, if they were."""
    few = [number for number in (None if clusters is None else clusters - 1, draws) if number is not None]
    z = float(-ndtri(error)) if not few else float(-stdtrit(min(few), error))
    return z if clusters is None else z * 1.96 / float(stdtrit(clusters - 1, 0.975))


def widen_errors(log_se: Floats, quantile: float) -> Floats:
    """Half the width of the interval of log ratios; 0 where the error is 0, infinite where it is no number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        count = 1.0 / log_se**2
        width = np.log(count) - np.log(gammaincinv(count, ndtr(-quantile)))
    return np.asarray(np.where(log_se == 0, 0.0, np.where(np.isfinite(log_se), width, np.inf)))


def limit_unclicked(group: NDArray[np.int64], clicks: Floats, reach: Floats, groups: int, bound: float) -> Floats:
    """By group the u at which Σ clicks · log(1 + u·reach) is `bound`; infinite where nothing says anything.
    `group`, `clicks` and `reach` = n/E: by cell."""
    total = np.bincount(group, clicks * reach, groups)
    said = (total > 0) & np.isfinite(total)
    low = np.log(bound / np.where(said, total, 1.0))  # as log(1 + z) ≤ z
    high = low.copy()
    for _ in range(_HALVINGS):
        short = said & (_sum_up(group, clicks, reach, high, groups) < bound)
        if not short.any():
            break
        high = np.where(short, high + np.maximum(1.0, high - low), high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = _sum_up(group, clicks, reach, middle, groups) < bound
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.where(said, np.exp(high), np.inf)


def _sum_up(group: NDArray[np.int64], clicks: Floats, reach: Floats, log_u: Floats, groups: int) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        by_cell = np.where(reach > 0, clicks * np.log1p(np.exp(log_u)[group] * reach), 0.0)
    return np.asarray(np.bincount(group, by_cell, groups), np.float64)

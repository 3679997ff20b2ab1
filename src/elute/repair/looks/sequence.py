"""Confidence sequences: intervals that hold at all looks at once, so that anyone may look whenever it suits.

The error of an efficient estimate with variance v has information I = 1/v and is B(I)/I, with B a Brownian motion: in
any smooth model, and with other parameters estimated beside it, later estimates are earlier ones and an independent
increment (Scharfstein, Tsiatis and Robins 1997). Mixing exp(μ·B - μ²·I/2) over μ ~ N(0, τ²) gives the martingale

    M(I) = (1 + τ²·I)^(-1/2) · exp(τ²·B² / (2·(1 + τ²·I))),      E M = 1,

which ever exceeds 1/α with probability at most α (Ville). Solved for the error (Robbins 1970):

    |error| ≤ sqrt(v · (1 + v/τ²) · (log(1 + τ²/v) + 2·log(1/α)))   at all v at once, with probability 1 - α.

The motion starts at I = 0. A log that had information before the first look starts at some I > 0: those looks are among
all, so nothing needs to be paid for them, and the bound still holds.

With y = τ²/v the square over v is (1 + 1/y)·(log(1 + y) + 2·log(1/α)). Its derivative vanishes where y - log(1 + y) =
2·log(1/α), so that u = 1 + y solves u·e^(-u) = α²/e: u = -W₋₁(-α²/e), W₋₁ the lower branch of Lambert's function. Put
in, the square over v *is* u. So the sequence is tightest at a variance v if τ² = (u - 1)·v, where its half-width is
sqrt(u·v): a single look has z·sqrt(v), and takes u/z² times less information for the same width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw, ndtri

Floats = NDArray[np.float64]

CONFIDENCE = 0.95

_SMALL = 1e-12
"""α² below which -α²/e is lost to rounding, and u is found by iteration."""


class ConfidenceSequence(NamedTuple):
    """The sequence for one of several quantities. `target`: the half-width to be reached; `goal`: the variance at which
    it is reached; `mixing`: τ²; `alpha`: of this quantity alone."""

    target: float
    goal: float
    mixing: float
    alpha: float

    @property
    def factor(self) -> float:
        """How many times the information of one look at the end, by itself, that looking at any time takes."""
        return (self.target / float(ndtri((1 + CONFIDENCE) / 2))) ** 2 / self.goal

    def find_half_widths(self, variance: Floats) -> Floats:
        """At these variances; infinite where those are."""
        return half_width(variance, self.mixing, self.alpha)


def plan_sequence(target_se: float, quantities: int) -> ConfidenceSequence:
    """The sequence that reaches the 95% interval of a single look with standard error `target_se` soonest, for each of
    so many quantities that all are to be held at once (Bonferroni)."""
    alpha = (1 - CONFIDENCE) / max(quantities, 1)
    target = float(ndtri((1 + CONFIDENCE) / 2)) * target_se
    goal = target**2 / find_square(alpha)
    return ConfidenceSequence(target, goal, find_best_mixing(goal, alpha), alpha)


def half_width(variance: Floats, mixing: float, alpha: float) -> Floats:
    """The bound above."""
    v = np.asarray(variance, np.float64)
    some = np.where(np.isfinite(v) & (v > 0), v, 1.0)
    square = some * (1 + some / mixing) * (np.log1p(mixing / some) + 2 * math.log(1 / alpha))
    return np.where(v > 0, np.where(np.isfinite(v), np.sqrt(square), np.inf), 0.0)


def find_square(alpha: float) -> float:
    """u: the square of the half-width over the variance, where it is least."""
    if alpha**2 > _SMALL:
        return float(-lambertw(-(alpha**2) / math.e, -1).real)
    u, wanted = 1.0, 1 + 2 * math.log(1 / alpha)
    for _ in range(100):
        u = wanted + math.log(u)
    return u


def find_best_mixing(variance: float, alpha: float) -> float:
    """The τ² that makes the sequence tightest at a variance."""
    return (find_square(alpha) - 1) * variance

"""A Beta prior on rates by maximum likelihood (empirical Bayes, as Section 5.2.1 of the CMIP paper has it)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SMALLEST, _LARGEST = 1e-3, 1e6
"""Of a + b: beyond, rates are all 0 or 1, or all alike."""

_STEPS = 100


class PseudoCounts(NamedTuple):
    """As it were, a clicks and b impressions without one."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)


def fit_beta(clicks: Floats, impressions: Floats) -> PseudoCounts:
    """The prior that makes clicks (beta-binomial: c of n) likeliest; clicks need not be whole.

    Newton's method in log a and log b; where the curvature is of no use, Minka's fixed point, which always climbs.
    """
    shown = impressions > 0
    pairs, times = np.unique(
        np.round(np.stack((clicks[shown], impressions[shown] - clicks[shown])), 3), axis=1, return_counts=True
    )
    if not pairs.size:
        return PseudoCounts(0.5, 0.5)
    c, s = np.maximum(pairs, 0.0)
    mean = float(np.clip((times @ c + 0.5) / (times @ (c + s) + 1.0), 1e-9, 1 - 1e-9))
    at: Floats = np.log(np.array([mean, 1.0 - mean]) * 2.0)
    for _ in range(_STEPS):
        slope, curve = _derivatives(at, c, s, times.astype(np.float64))
        change = _minka_step(at, c, s, times.astype(np.float64))
        if curve[0, 0] < 0 and np.linalg.det(curve) > 0:
            newton = -np.asarray(np.linalg.solve(curve, slope), np.float64)
            change = newton * min(1.0, 2.0 / np.abs(newton).max()) if newton.any() else newton
        at = at + change
        size = np.log(np.exp(at).sum())
        at += np.clip(size, np.log(_SMALLEST), np.log(_LARGEST)) - size
        if np.abs(change).max() < 1e-10:
            break
    return PseudoCounts(*map(float, np.exp(at)))


def polygammas(x: Floats) -> tuple[Floats, Floats]:
    """First and second derivative of log Γ, in double precision (jax has them in single, scipy is not needed here).

    By the recurrence up to arguments of at least 8, and Stirling's series from there.
    """
    one, two, x = np.zeros_like(x), np.zeros_like(x), x.copy()
    for _ in range(8):
        small = x < 8.0
        one -= small / x
        two += small / x**2
        x += small
    y = 1.0 / x**2
    one += np.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    two += 1.0 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * 5 / 66))))
    return one, two


def _gamma_differences(at: Floats, c: Floats, s: Floats) -> tuple[Floats, list[Floats], list[Floats]]:
    """a, b and their sum; first and second derivatives of log Γ(x + count) - log Γ(x) for each."""
    a, b = np.exp(at)
    first, second = [], []
    for x, count in ((a, c), (b, s), (a + b, c + s)):
        (one, two), (one_low, two_low) = polygammas(x + count), polygammas(np.array([x]))
        first.append(one - one_low)
        second.append(two - two_low)
    return np.array([a, b]), first, second


def _derivatives(at: Floats, c: Floats, s: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Of the log-likelihood in log a and log b."""
    x, first, second = _gamma_differences(at, c, s)
    one = np.array([times @ (first[0] - first[2]), times @ (first[1] - first[2])])
    shared = -(times @ second[2])
    two = np.array([[times @ second[0] + shared, shared], [shared, times @ second[1] + shared]])
    return x * one, two * np.outer(x, x) + np.diag(x * one)


def _minka_step(at: Floats, c: Floats, s: Floats, times: Floats) -> Floats:
    """The change of log a and log b that the fixed point asks for."""
    _, first, _ = _gamma_differences(at, c, s)
    below = max(float(times @ first[2]), 1e-300)
    return np.log(np.maximum([times @ first[0], times @ first[1]], 1e-12 * below) / below)

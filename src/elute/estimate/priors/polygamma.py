"""Derivatives of log Γ, compiled: for as many items as a log has.

By recurrence to an argument of 6 or more, then by the asymptotic series; good to 1e-10.
"""

from __future__ import annotations

import math

import numpy as np

from elute.estimate.solve.problem import Floats
from elute.kernels.jit import jit

_FAR = 6.0
_STEPS = 60


@jit
def digamma(x: float) -> float:
    """ψ(x), x > 0."""
    out = 0.0
    while x < _FAR:
        out -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))))
    return out + math.log(x) - 0.5 / x - series


@jit
def trigamma(x: float) -> float:
    """ψ'(x), x > 0: the variance of the logarithm of a Gamma variable of shape x."""
    out = 0.0
    while x < _FAR:
        out += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return out + 1.0 / x + 0.5 * y + y / x * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30))))


@jit
def _tetragamma(x: float) -> float:
    """ψ''(x), x > 0."""
    out = 0.0
    while x < _FAR:
        out -= 2.0 / (x * x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return out - y - y / x - y * y * (0.5 - y * (1.0 / 6 - y * (1.0 / 6 - y * 0.3)))


@jit
def invert_trigamma(value: float) -> float:
    """The x with ψ'(x) = value > 0. Newton's method on 1/ψ', which is nearly straight."""
    x = 0.5 + 1.0 / value
    for _ in range(_STEPS):
        at = trigamma(x)
        step = at * (1.0 - at / value) / _tetragamma(x)
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


@jit
def widen(shape: Floats, rate: Floats, variance: Floats) -> None:
    """Add a variance to the logarithms of Gamma variables and keep the means of these: in place."""
    for i in range(shape.shape[0]):
        if variance[i] > 0.0 and np.isfinite(shape[i]):
            wider = invert_trigamma(trigamma(shape[i]) + variance[i])
            rate[i] *= math.exp(digamma(wider) - digamma(shape[i]))
            shape[i] = wider

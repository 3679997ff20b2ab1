"""A period's figure against what the periods before it let expect.

Each figure y(d) has a sampling variance s(d). Days differ by more than that: in what people want, in who comes, by the
day of the week. So y(d) = x(d)·β + u(d) + e(d), with x the calendar (`calendar`), e of variance s and u of a variance
τ² that the baseline itself tells: DerSimonian and Laird's moments, as for studies in a meta-analysis, of which the new
period is one more (the prediction interval of Higgins, Thompson and Spiegelhalter, 2009). What is left over scales all
variances, but never makes them smaller. The new figure, studentised, is held against Student's distribution with the
baseline's degrees of freedom.

A period far off in a baseline (one that would have raised an alarm) would hide all that follow: up to a quarter of a
baseline is left out, the farthest first. What lasts longer becomes the new normal.

All arguments may have any leading axes; those of a baseline come last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_FAR = 1e-3
"""Chance with which a baseline of quiet periods has one left out."""
_MOST = 0.25
"""Of a baseline that may be left out."""
_TINY = 1e-12


class Prediction(NamedTuple):
    """`expected` and `deviation` of the new figure; `t` of it, with `freedom` degrees; NaN where the baseline is too
    short. `residual`: of the baseline, each over its own standard deviation, 0 where a period is left out."""

    expected: Floats
    deviation: Floats
    t: Floats
    freedom: Floats
    residual: Floats
    kept: Flags

    def p(self, side: int = 0) -> Floats:
        """The chance of as much, to both sides, above (1) or below (-1); 1 where nothing can be said."""
        lower = stdtr(np.maximum(self.freedom, 1.0), np.nan_to_num(self.t))
        upper = stdtr(np.maximum(self.freedom, 1.0), -np.nan_to_num(self.t))
        found = np.minimum(1.0, 2 * np.minimum(lower, upper)) if side == 0 else upper if side > 0 else lower
        return np.where(np.isfinite(self.t), found, 1.0)


class _Fitted(NamedTuple):
    beta: Floats
    cross: Floats
    weight: Floats
    tau2: Floats
    scale: Floats
    freedom: Floats
    residual: Floats
    leverage: Floats


def predict(
    y: Floats, s: Floats, keep: Flags, x: Floats, y_new: Floats, s_new: Floats, x_new: Floats, least: int
) -> Prediction:
    """`keep`: which of the baseline are there at all; `x`: their rows of the design, with zeros for what is not used;
    `least`: degrees of freedom below which nothing is said."""
    keep = np.broadcast_to(keep, y.shape).copy()
    x = np.broadcast_to(x, (*y.shape, x.shape[-1]))
    allowed = np.floor(_MOST * keep.sum(-1))
    for left_out in range(int(allowed.max(initial=0)) + 1):
        found = _fit(y, s, keep, x)
        if left_out == int(allowed.max(initial=0)):
            break
        far = _find_far(y, found, keep) & (left_out < allowed)[..., None]
        if not far.any():
            break
        keep &= ~far
    expected = (found.beta * x_new).sum(-1)
    spread = ((x_new[..., None, :] @ found.cross)[..., 0, :] * x_new).sum(-1)
    deviation = np.sqrt(found.scale * (s_new + found.tau2 + spread))
    enough = found.freedom >= least
    t = np.where(enough, (y_new - expected) / deviation, np.nan)
    own = np.sqrt(found.scale[..., None] * np.maximum((1 - found.leverage) / np.maximum(found.weight, _TINY), _TINY))
    residual = np.where(keep, found.residual / own, 0.0)
    return Prediction(expected, deviation, t, np.maximum(found.freedom, 0.0), residual, keep)


def _fit(y: Floats, s: Floats, keep: Flags, x: Floats) -> _Fitted:
    """Weighted least squares, twice: to find τ², and with it."""
    x = np.where(keep[..., None], x, 0.0)
    used = (keep[..., None] & (x != 0)).any(-2).sum(-1)
    freedom = keep.sum(-1) - used
    weight = np.where(keep, 1.0 / np.maximum(s, _TINY), 0.0)
    beta, cross = _solve(y, weight, x)
    left = (weight * (y - (x @ beta[..., None])[..., 0]) ** 2).sum(-1)
    total = (weight * (1 - _find_leverage(weight, x, cross))).sum(-1)
    tau2 = np.maximum(0.0, (left - freedom) / np.maximum(total, _TINY))
    weight = np.where(keep, 1.0 / np.maximum(s + tau2[..., None], _TINY), 0.0)
    beta, cross = _solve(y, weight, x)
    residual = np.where(keep, y - (x @ beta[..., None])[..., 0], 0.0)
    scale = np.maximum(1.0, (weight * residual**2).sum(-1) / np.maximum(freedom, 1))
    leverage = _find_leverage(weight, x, cross)
    return _Fitted(beta, cross, weight, tau2, scale, freedom.astype(np.float64), residual, leverage)


def _find_leverage(weight: Floats, x: Floats, cross: Floats) -> Floats:
    """How much of each of a baseline's own deviation its fit takes up."""
    return np.asarray(weight * ((x @ cross) * x).sum(-1))


def _solve(y: Floats, weight: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Coefficients, and their covariance if variances are 1/weight."""
    size = np.maximum(weight.max(-1, initial=0.0), _TINY)[..., None]  # so that no scale is too small for the inverse
    weighted = x * (weight / size)[..., None]
    ridge = 1e-10 * np.eye(x.shape[-1])
    cross = np.linalg.inv(np.swapaxes(weighted, -1, -2) @ x + ridge)
    beta = (cross @ (np.swapaxes(weighted, -1, -2) @ y[..., None]))[..., 0]
    return beta, cross / size[..., None]


def _find_far(y: Floats, found: _Fitted, keep: Flags) -> Flags:
    """The farthest of each baseline, where it is farther than chance: by its residual over a deviation that the others
    give."""
    free = np.maximum(found.freedom - 1, 1)[..., None]
    room = np.maximum(1 - found.leverage, 1e-6)
    square = found.weight * found.residual**2 / room
    rest = np.maximum(1.0, ((found.weight * found.residual**2).sum(-1, keepdims=True) - square) / free)
    outside = np.where(keep, square / rest, 0.0)
    limit = stdtrit(free[..., 0], 1 - _FAR / 2 / np.maximum(keep.sum(-1), 1)) ** 2
    farthest = np.arange(y.shape[-1]) == outside.argmax(-1)[..., None]
    return np.asarray(farthest & (outside > limit[..., None]) & (found.freedom > 1)[..., None])

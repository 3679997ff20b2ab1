"""The affine model p = α_t·u(x) + β_t by weighted least squares: fast, for fitting many drawn logs.

Alternately every item's u, then every factor's line, each in closed form: a line through points with errors in all
coordinates, of known variance. Weights n/(p·(1-p)) are taken at the fit before, and once more at the fit they lead to.
Only α, β and u together mean something: p and the weighted sum of squares do not depend on the gauge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from elute.cells.counts import Cells
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.jit import jit

_ANGLES = 16
_REWEIGHTED = 2
_MOST_STEPS = 5_000
_CLOSE = 1e-9
"""Of the sum of squares: a share of it below which a round's gain ends the alternation."""


class Line(NamedTuple):
    """One factor's click rates on another's: y = intercept + slope·x, and the intercept's standard error."""

    intercept: float
    slope: float
    se: float


class FittedLines(NamedTuple):
    """The lines, each item's place on them, and the weighted squares by factor."""

    alpha: Floats
    beta: Floats
    u: Floats
    squares: Floats

    def probability(self, cells: Cells) -> Floats:
        """By cell; may leave [0, 1]."""
        item = np.repeat(np.arange(len(self.u)), np.diff(cells.offsets))
        return np.asarray(self.alpha[cells.factor] * self.u[item] + self.beta[cells.factor])


def fit_lines(cells: Cells, alpha: Floats, beta: Floats, u: Floats) -> FittedLines:
    """The least squares from a start."""
    found = FittedLines(alpha.copy(), beta.copy(), u.copy(), np.zeros(len(alpha)))
    rate = cells.clicks / cells.impressions
    for _ in range(_REWEIGHTED):
        weight = weights(cells, found.probability(cells))
        _alternate(cells.offsets, cells.factor, rate, weight, *found)
    return found


def fit_best_line(x: Floats, y: Floats, x_variance: Floats, y_variance: Floats) -> Line:
    """The line of least squares through points with errors in both coordinates, of known variance: the intercept
    follows from the slope, and the slope's angle is searched (York et al. 2004, whose standard error this is)."""

    def weight(slope: float) -> Floats:
        return np.asarray(1 / (y_variance + slope**2 * x_variance))

    def intercept(slope: float) -> float:
        return float(np.average(y - slope * x, weights=weight(slope)))

    def squares(angle: float) -> float:
        slope = math.tan(angle)
        return float((weight(slope) * (y - slope * x - intercept(slope)) ** 2).sum())

    scale = float(np.std(y) / max(float(np.std(x)), 1e-300))
    angles = np.arctan(scale * np.tan(np.linspace(-0.5 * math.pi, 0.5 * math.pi, _ANGLES + 2)[1:-1]))
    least = int(np.argmin([squares(angle) for angle in angles]))
    edges = np.concatenate(([-0.5 * math.pi], angles, [0.5 * math.pi]))
    near = float(edges[least]), float(edges[least + 2])
    slope = math.tan(minimize_scalar(squares, bounds=near, method="bounded", options={"xatol": 1e-8}).x)
    w, a = weight(slope), intercept(slope)
    place = x + w * slope * x_variance * (y - a - slope * x)
    mean = float(np.average(place, weights=w))
    spread = float((w * (place - mean) ** 2).sum())
    return Line(a, slope, math.sqrt(1 / w.sum() + mean**2 / max(spread, 1e-300)))


def weights(cells: Cells, p: Floats) -> Floats:
    """n/(p·(1-p)), with p no nearer to 0 and 1 than 1/(n+1)."""
    n = cells.impressions.astype(np.float64)
    p = np.clip(p, 1 / (n + 1), n / (n + 1))
    return np.asarray(n / (p * (1 - p)))


@jit
def _alternate(
    offsets: NDArray[np.int64],
    factor: Codes,
    rate: Floats,
    weight: Floats,
    alpha: Floats,
    beta: Floats,
    u: Floats,
    squares: Floats,
) -> None:
    """Improve `alpha`, `beta` and `u` in place until nothing is gained; `squares` by factor."""
    before = np.inf
    for _ in range(_MOST_STEPS):
        moments = np.zeros((alpha.shape[0], 5))
        for item in range(u.shape[0]):
            over = 0.0
            under = 0.0
            for cell in range(offsets[item], offsets[item + 1]):
                t = factor[cell]
                over += weight[cell] * alpha[t] * (rate[cell] - beta[t])
                under += weight[cell] * alpha[t] ** 2
            if under > 0.0:
                u[item] = over / under
            for cell in range(offsets[item], offsets[item + 1]):
                w, y, x = weight[cell], rate[cell], u[item]
                t = factor[cell]
                moments[t, 0] += w
                moments[t, 1] += w * x
                moments[t, 2] += w * y
                moments[t, 3] += w * x * x
                moments[t, 4] += w * x * y
        for t in range(alpha.shape[0]):
            w, x, y, xx, xy = moments[t, 0], moments[t, 1], moments[t, 2], moments[t, 3], moments[t, 4]
            if w > 0.0:
                spread = xx - x * x / w
                if spread > 1e-12 * xx:
                    alpha[t] = (xy - x * y / w) / spread
                beta[t] = (y - alpha[t] * x) / w
        squares[:] = 0.0
        for item in range(u.shape[0]):
            for cell in range(offsets[item], offsets[item + 1]):
                t = factor[cell]
                squares[t] += weight[cell] * (rate[cell] - alpha[t] * u[item] - beta[t]) ** 2
        total = squares.sum()
        if before - total <= _CLOSE * total:
            break
        before = total

"""Trust bias: p = α_t·r(x) + β_t by maximum likelihood (limits paper, Eq. 5, 9 and 10).

With r, α and β probabilities, p is a mixture: r·h_t + (1-r)·l_t, with h = α + β the clicks on the relevant and
l = β = λ·h, 0 ≤ λ ≤ 1, those on the irrelevant. For given h and λ the likelihood of each item is concave in r
alone, so r is profiled out, and a quasi-Newton method with bounds climbs in the h and λ of the factors only. As
a whole the likelihood is not concave: on a sparse log what is reached may be a local maximum.

The data determine r up to an affine map in each component: r → u·r + v leaves p alone if α and β follow. The
scale is fixed as in the other models: the largest α is 1. The origin: the factor of least β/α has β = 0, so
clicks that irrelevant items get under every factor alike count as relevance. That takes a denser graph than
r·o: two items for each link between factors, not one.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.estimate.models.base import Estimator, Solution, Start
from elute.estimate.solve.affine_errors import affine_information, affine_item_variances
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_factor
from elute.estimate.solve.standard_errors import DENSE, invert
from elute.kernels.jit import jit
from elute.progress import Progress, silent

_EDGE = 1e-9
"""The least distance of click probabilities from 0 and 1."""

_FIRST_SHARE = 0.1
"""The first λ."""

_MEMORY = 50
_LAST_STEP = 1e-9
_MAX_STEPS = 100
_SINGULAR = 1e10
"""Of an inverse with unit diagonal before: beyond it, what is inverted has lost its digits."""


class Affine(Estimator):
    """p = α_t·r(x) + β_t. `propensity_` is α; `offset_` is β, by factor, also a column of `propensities_`.

    `tolerance`: the largest gradient, in standard errors of its parameter, at which to stop. `start`: the
    first α + β; None takes it from the factors' click rates.
    """

    has_posteriors = False

    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-3,
        max_iter: int = 5_000,
        start: Start = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)

    def _solve(self, problem: Problem) -> Solution:
        from scipy.optimize import minimize  # slow to import

        cells, n = problem.cells, problem.n_factors
        shown = total_by_factor(cells.factor, cells.impressions, n)
        rate = (total_by_factor(cells.factor, cells.clicks, n) + 0.5) / (shown + 1)
        high = np.clip(self._start_propensities(problem, 1.8 * rate), 0.05, 0.95)
        scale = np.sqrt(np.concatenate((shown, shown)))
        r = np.full(problem.n_items, 0.5)
        iterations = 0

        def loss(x: Floats) -> tuple[float, Floats]:
            high, share = np.split(x / scale, 2)
            value, of_high, of_low = _profile_loss(*cells, high, share * high, r)
            return value, np.concatenate((of_high + share * of_low, high * of_low)) / scale

        def report(_: Floats) -> None:
            nonlocal iterations
            iterations += 1
            self.progress("fitting", iterations, self.max_iter)

        end = minimize(
            loss,
            np.concatenate((high, np.full(n, _FIRST_SHARE))) * scale,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack((_EDGE * scale, (1 - _EDGE) * scale), axis=1),
            callback=report,
            options={"maxiter": self.max_iter, "maxcor": _MEMORY, "gtol": self.tolerance, "ftol": 0.0},
        )
        inside = np.clip(end.x - end.jac, _EDGE * scale, (1 - _EDGE) * scale)
        steepest = float(np.abs(inside - end.x).max())
        reason = ""
        if steepest > self.tolerance:
            reason = f"stopped after {iterations:,} iterations at a gradient of {steepest:.1g} standard errors"
        value = -loss(end.x)[0]
        high, share = np.split(end.x / scale, 2)
        alpha, offset, r = _fix_gauge(problem, high, share * high, r)
        self.offset_ = offset[problem.merged]
        self._offset = offset
        return Solution(alpha, r, value, iterations, not reason, reason)

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """From the information about all α and β, relevance profiled out and the gauge's own values known.

        NaN where the graph is too thin for this model, and beyond 2,500 factors."""
        cells, n = problem.cells, problem.n_factors
        scale, origin = _find_gauge_factors(problem, propensity, self._offset)
        free = ~np.isin(np.arange(2 * n), np.concatenate((scale, n + origin)))
        if free.sum() > DENSE:
            return np.full(n, np.nan), np.full(problem.n_items, np.nan)
        row = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
        given = (*cells[:3], propensity, self._offset, relevance, row)
        matrix = affine_information(*given, int(free.sum()))
        size = np.sqrt(np.diagonal(matrix))
        with np.errstate(invalid="ignore", divide="ignore"):
            inverse = invert(matrix / np.outer(size, size))
            inverse[:, np.diagonal(inverse) > _SINGULAR] = np.nan
            covariance = inverse / np.outer(size, size)
            variance = np.zeros(2 * n)
            variance[free] = np.diagonal(covariance)
            of_factors = np.where(propensity > 0, np.sqrt(variance[:n]) / propensity, np.nan)
            of_items = np.sqrt(affine_item_variances(*given, covariance)) / relevance
        return of_factors, np.where(relevance > 0, of_items, np.nan)

    @property
    def propensities_(self) -> pa.Table:
        """Bias columns, `component, propensity, log_se, offset`; one row a factor."""
        return super().propensities_.append_column("offset", pa.array(self.offset_))


def _find_gauge_factors(problem: Problem, alpha: Floats, beta: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each component the factor that fixes the scale (largest α) and the one that fixes the origin (least
    β/α); both only where α > 0."""
    rising = np.flatnonzero(alpha > 0)
    component = problem.component[rising]
    fixed = []
    for rank in (-alpha[rising], beta[rising] / alpha[rising]):
        order = np.lexsort((rank, component))
        fixed.append(rising[order[np.unique(component[order], return_index=True)[1]]])
    return fixed[0], fixed[1]


def _fix_gauge(problem: Problem, high: Floats, low: Floats, r: Floats) -> tuple[Floats, Floats, Floats]:
    """α, β and r at the reported scale and origin."""
    alpha = high - low
    scale, origin = _find_gauge_factors(problem, alpha, low)
    shift, stretch = np.zeros(problem.n_factors), np.ones(problem.n_factors)
    shift[problem.component[origin]] = low[origin] / alpha[origin]
    stretch[problem.component[scale]] = alpha[scale]
    beta = low - alpha * shift[problem.component]
    beta[origin] = 0.0
    at = problem.item_component
    return alpha / stretch[problem.component], beta, (r + shift[at]) * stretch[at]


@jit
def _slope(
    begin: int, end: int, factor: Codes, impressions: Amounts, clicks: Amounts, high: Floats, low: Floats, r: float
) -> tuple[float, float]:
    """Of an item's log-likelihood at r: its first derivative and, negated, its second."""
    slope = 0.0
    curvature = 0.0
    for cell in range(begin, end):
        alpha = high[factor[cell]] - low[factor[cell]]
        p = low[factor[cell]] + alpha * r
        hit = alpha * clicks[cell] / p
        miss = alpha * (float(impressions[cell]) - float(clicks[cell])) / (1.0 - p)
        slope += hit - miss
        curvature += hit * alpha / p + miss * alpha / (1.0 - p)
    return slope, curvature


@jit
def _maximise_item(
    begin: int, end: int, factor: Codes, impressions: Amounts, clicks: Amounts, high: Floats, low: Floats, guess: float
) -> float:
    """An item's best r in [0, 1]: a bound, or Newton on the slope, which falls, within a closing bracket."""
    if _slope(begin, end, factor, impressions, clicks, high, low, 0.0)[0] <= 0.0:
        return 0.0
    if _slope(begin, end, factor, impressions, clicks, high, low, 1.0)[0] >= 0.0:
        return 1.0
    left, right = 0.0, 1.0
    r = guess if 0.0 < guess < 1.0 else 0.5
    for _ in range(_MAX_STEPS):
        slope, curvature = _slope(begin, end, factor, impressions, clicks, high, low, r)
        if slope > 0.0:
            left = r
        else:
            right = r
        step = slope / curvature
        if abs(step) <= _LAST_STEP * r:
            break
        r = r + step if left < r + step < right else 0.5 * (left + right)
    return r


@jit
def _profile_loss(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    high: Floats,
    low: Floats,
    r: Floats,
) -> tuple[float, Floats, Floats]:
    """-log-likelihood at each item's best r (kept in `r`), and its gradient in `high` and `low`."""
    of_high, of_low = np.zeros_like(high), np.zeros_like(low)
    value = 0.0
    for item in range(r.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        r[item] = _maximise_item(begin, end, factor, impressions, clicks, high, low, r[item])
        for cell in range(begin, end):
            t = factor[cell]
            p = low[t] + (high[t] - low[t]) * r[item]
            c = float(clicks[cell])
            s = float(impressions[cell]) - c
            value -= c * math.log(p) + s * math.log(1.0 - p)
            pull = c / p - s / (1.0 - p)
            of_high[t] -= pull * r[item]
            of_low[t] -= pull * (1.0 - r[item])
    return value, of_high, of_low

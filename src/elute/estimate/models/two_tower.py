"""Two towers: r = σ(a(x)) and o = σ(b(t)) by gradient on the binary cross-entropy (Appendix C.3).

One embedding a tower, full batch, on counts. The default optimiser is L-BFGS: the loss is smooth and its gradient
exact, so a quasi-Newton method converges where Adam at a fixed rate hovers. Parameters are scaled by the root
of their impressions, which brings items with a handful and factors with millions to one footing, and makes a
gradient read as a distance in standard errors.

A sigmoid near 1 passes next to no gradient, so a tower can be stuck there far below the maximum. In log r and
log o the likelihood is concave, and there such a value shows that it wants to fall: it is set back, and the
descent resumed, until none does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from elute.cells.counts import Amounts
from elute.errors import EluteError
from elute.estimate.models.base import Estimator, Solution, Start
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_factor, total_by_item
from elute.kernels.jit import jit
from elute.progress import Progress, silent

_MEMORY = 20
_RATE, _DECAY = 0.01, (0.9, 0.999)
"""Of Adam; the rate is that of a logit."""

_FLAT = 3.0
"""A logit beyond which a sigmoid counts as flat: σ(3) = 0.95."""

Loss = Callable[[Floats], tuple[float, Floats]]
Optimiser = Literal["l-bfgs", "adam"]


class TwoTower(Estimator):
    """p = σ(a(x))·σ(b(t)) by gradient.

    `tolerance`: the largest gradient, in standard errors of its parameter, at which to stop. `start`: None
    draws b from a standard normal distribution; a starts from 0. `optimiser`: "adam" is gradient descent as the
    identifiability paper's experiments use it, full batch, both towers drawn from a standard normal distribution:
    where the log is not recoverable, it is the path of the optimiser that decides between equally good maxima.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-3,
        max_iter: int = 20_000,
        start: Start = None,
        progress: Progress = silent,
        optimiser: Optimiser = "l-bfgs",
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)
        self.optimiser = optimiser

    def _solve(self, problem: Problem) -> Solution:
        if self.optimiser not in ("l-bfgs", "adam"):
            raise EluteError(f"no optimiser '{self.optimiser}' of Two-Tower; there are: l-bfgs, adam")
        cells, n_items = problem.cells, problem.n_items
        rng = np.random.default_rng(self.seed)
        b = rng.standard_normal(problem.n_factors)
        b = logit(np.clip(self._start_propensities(problem, expit(b)), 1e-6, 1 - 1e-6))
        a = rng.standard_normal(n_items) if self.optimiser == "adam" else np.zeros(n_items)
        shown = total_by_item(cells.offsets, cells.impressions), total_by_factor(*cells[1:3], problem.n_factors)
        scale = np.sqrt(np.concatenate(shown))

        def loss(x: Floats) -> tuple[float, Floats]:
            value, *gradients = _loss(*cells, *np.split(x / scale, [n_items]))
            return value, np.concatenate(gradients) / scale

        descend = self._adam if self.optimiser == "adam" else self._quasi_newton
        x, iterations, reason = descend(loss, np.concatenate((a, b)) * scale, scale)
        r, o = np.split(expit(x / scale), [n_items])
        return Solution(o, r, log_likelihood(*cells, r, o), iterations, not reason, reason)

    def _quasi_newton(self, loss: Loss, x: Floats, scale: Floats) -> tuple[Floats, int, str]:
        from scipy.optimize import minimize  # slow to import

        iterations = 0

        def report(_: Floats) -> None:
            nonlocal iterations
            iterations += 1
            self.progress("fitting", iterations, self.max_iter)

        stuck = np.zeros(len(x), np.bool_)
        while iterations < self.max_iter:
            before = iterations
            x[stuck] = _FLAT * scale[stuck]
            limits = {"maxiter": self.max_iter - iterations, "maxfun": 10 * self.max_iter, "maxcor": _MEMORY}
            stops = {"gtol": self.tolerance, "ftol": 0.0}
            end = minimize(loss, x, jac=True, method="L-BFGS-B", callback=report, options=limits | stops)
            x = end.x
            stuck = (x / scale > _FLAT) & (end.jac > self.tolerance * expit(-x / scale))
            if iterations == before or not stuck.any():
                break
        reason = self._describe_stop(iterations, end.jac)
        if stuck.any():
            reason = reason or f"stopped after {iterations:,} iterations"
            reason += f", {stuck.sum():,} towers stuck near 1"
        return x, iterations, reason

    def _adam(self, loss: Loss, x: Floats, scale: Floats) -> tuple[Floats, int, str]:
        mean, square = np.zeros_like(x), np.zeros_like(x)
        for step in range(1, self.max_iter + 1):
            slope = loss(x)[1]
            if np.abs(slope).max() <= self.tolerance:
                return x, step - 1, ""
            mean = _DECAY[0] * mean + (1 - _DECAY[0]) * slope
            square = _DECAY[1] * square + (1 - _DECAY[1]) * slope**2
            corrected = np.sqrt(square / (1 - _DECAY[1] ** step))
            x = x - _RATE * scale * mean / (1 - _DECAY[0] ** step) / (corrected + 1e-12)
            self.progress("fitting", step, self.max_iter)
        return x, self.max_iter, self._describe_stop(self.max_iter, loss(x)[1])

    def _describe_stop(self, iterations: int, slope: Floats) -> str:
        steepest = float(np.abs(slope).max())
        if steepest <= self.tolerance:
            return ""
        return f"stopped after {iterations:,} iterations at a gradient of {steepest:.1g} standard errors"


@jit
def _loss(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, a: Floats, b: Floats
) -> tuple[float, Floats, Floats]:
    """-log-likelihood and its gradient. 1-p as σ(-a) + σ(a)·σ(-b), which keeps its digits as p nears 1."""
    of_items, of_factors = np.zeros_like(a), np.zeros_like(b)
    o, not_o = 1.0 / (1.0 + np.exp(-b)), 1.0 / (1.0 + np.exp(b))
    log_o = -np.logaddexp(0.0, -b)
    value = 0.0
    for item in range(a.shape[0]):
        r, not_r = 1.0 / (1.0 + math.exp(-a[item])), 1.0 / (1.0 + math.exp(a[item]))
        log_r = -np.logaddexp(0.0, -a[item])
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            c = float(clicks[cell])
            s = float(impressions[cell]) - c
            q = max(not_r + r * not_o[t], 1e-300)
            value -= c * (log_r + log_o[t]) + s * math.log(q)
            pull = c - s * r * o[t] / q
            of_items[item] -= pull * not_r
            of_factors[t] -= pull * not_o[t]
    return value, of_items, of_factors

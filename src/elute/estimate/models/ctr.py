"""Click rates shrunk towards each other: no debiasing, but few impressions do not make an extreme rate.

Items' rates are taken to come from one Beta distribution, fitted by maximum likelihood to all items (clicks
are then beta-binomial: empirical Bayes); relevance is an item's posterior mean (c + α)/(n + α + β).
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma, polygamma

from elute.estimate.models.base import Estimator, Solution, Start
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Floats, Problem, total_by_item
from elute.progress import Progress, silent

_STRONGEST = 1e8
"""The largest α + β: items that differ no more than chance have no finite one."""


class CTR(Estimator):
    """Posterior mean click rates under a fitted Beta prior, whose parameters are `prior_`.

    `tolerance`: on the gradient per item. `log_se` is the posterior standard deviation of log relevance.
    """

    propensities_are = "ignored"

    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-8,
        max_iter: int = 500,
        start: Start = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)

    def _solve(self, problem: Problem) -> Solution:
        cells = problem.cells
        n, c = total_by_item(cells.offsets, cells.impressions), total_by_item(cells.offsets, cells.clicks)
        alpha, beta, iterations, reason = fit_prior(n, c, self.tolerance, self.max_iter)
        self.prior_ = alpha, beta
        self.progress("fitting", iterations, iterations)
        relevance, ones = (c + alpha) / (n + alpha + beta), np.ones(problem.n_factors)
        return Solution(ones, relevance, log_likelihood(*cells, relevance, ones), iterations, not reason, reason)

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        cells, (alpha, beta) = problem.cells, self.prior_
        n, c = total_by_item(cells.offsets, cells.impressions), total_by_item(cells.offsets, cells.clicks)
        variance = polygamma(1, c + alpha) - polygamma(1, n + alpha + beta)
        return np.zeros(problem.n_factors), np.sqrt(np.maximum(variance, 0.0))


def fit_prior(n: Floats, c: Floats, tolerance: float, max_iter: int) -> tuple[float, float, int, str]:
    """α and β of the beta-binomial by maximum likelihood, the iterations it took, and why it failed (or "")."""
    from scipy.optimize import minimize  # slow to import

    (n, c), times = np.unique(np.stack((n, c)), axis=1, return_counts=True)
    share = times / times.sum()

    def loss(x: Floats) -> tuple[float, Floats]:
        mean, strength = 1 / (1 + np.exp(-x[0])), np.exp(x[1])
        a, b = mean * strength, (1 - mean) * strength
        value = share @ (betaln(c + a, n - c + b) - betaln(a, b))
        of_sum = digamma(strength) - digamma(n + strength)
        of_a = share @ (digamma(c + a) - digamma(a) + of_sum)
        of_b = share @ (digamma(n - c + b) - digamma(b) + of_sum)
        slope = np.array([(of_a - of_b) * mean * (1 - mean) * strength, of_a * a + of_b * b])
        return -float(value), -slope

    rate = (share @ c + 0.5) / (share @ n + 1)
    bounds = [(-40.0, 40.0), (np.log(1e-6), np.log(_STRONGEST))]
    end = minimize(
        loss,
        np.array([np.log(rate / (1 - rate)), np.log(10.0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter, "gtol": tolerance, "ftol": 1e-15},
    )
    mean, strength = 1 / (1 + np.exp(-end.x[0])), np.exp(end.x[1])
    reason = "" if end.success else f"fitting the prior stopped: {end.message}"
    return float(mean * strength), float((1 - mean) * strength), int(end.nit), reason

"""Dual learning by alternating least squares on counts (Appendix C.3 of the identifiability paper).

Each step minimises Σ (c - o·r)² over all impressions, in r for given o and then in o for that r, in closed
form, and clips to [0, 1]. The paper prints the propensity step with the relevance of the step before. Taken
literally, that runs two alternations that never meet (r₁ from o₀, o₂ from r₁, … and o₁ from r₀, r₂ from o₁, …)
and pairs the relevance of one with the propensities of the other, at two scales; so here, as in the paper's
public code, each update uses the latest values.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.errors import EluteError
from elute.estimate.models.base import Estimator, Solution, Start
from elute.estimate.solve.fixpoint import iterate
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_factor
from elute.kernels.jit import jit
from elute.progress import Progress, silent

Variant = Literal["paper", "public"]


class DLA(Estimator):
    """p = r(x)·o(t) by alternating least squares.

    `tolerance`: on the distance still to go, in propensities and relevances. `start`: the first propensities;
    None draws them uniformly from [0, 1]. `variant`: "public" is what the identifiability paper's code does: a
    propensity is the mean of c/r over impressions, not the least-squares minimiser. `log_se` is that of maximum
    likelihood at these estimates: a lower bound, as least squares weighs cells less well.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-6,
        max_iter: int = 20_000,
        start: Start = None,
        progress: Progress = silent,
        variant: Variant = "paper",
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)
        self.variant = variant

    def _solve(self, problem: Problem) -> Solution:
        if self.variant not in ("paper", "public"):
            raise EluteError(f"no variant '{self.variant}' of DLA; there are: paper, public")
        o = self._start_propensities(problem, np.random.default_rng(self.seed).random(problem.n_factors))
        shown = total_by_factor(problem.cells.factor, problem.cells.impressions, problem.n_factors)
        step = partial(_step, *problem.cells, shown, self.variant == "public")
        end = iterate(step, o, np.zeros(problem.n_items), self.tolerance, self.max_iter, self.progress)
        value = log_likelihood(*problem.cells, end.relevance, end.propensity)
        return Solution(end.propensity, end.relevance, value, end.iterations, not end.reason, end.reason)


@jit
def _step(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    shown: Floats,
    mean_of_ratios: bool,
    o: Floats,
    r: Floats,
) -> tuple[Floats, Floats]:
    """One step of each; a value that nothing determines stays as it is."""
    over, under = np.zeros_like(o), np.zeros_like(o)
    new_r = np.empty_like(r)
    for item in range(r.shape[0]):
        product = 0.0
        square = 0.0
        for cell in range(offsets[item], offsets[item + 1]):
            product += clicks[cell] * o[factor[cell]]
            square += impressions[cell] * o[factor[cell]] ** 2
        new = min(product / square, 1.0) if square > 0.0 else r[item]
        new_r[item] = new
        for cell in range(offsets[item], offsets[item + 1]):
            if not mean_of_ratios:
                over[factor[cell]] += clicks[cell] * new
                under[factor[cell]] += impressions[cell] * new**2
            elif new > 0.0:
                over[factor[cell]] += clicks[cell] / new
    if mean_of_ratios:
        under = shown
    return np.where(under > 0.0, np.minimum(over / np.maximum(under, 1e-300), 1.0), o), new_r

"""Regression-EM on counts (Wang et al.; Appendix C.3 of the identifiability paper).

For an impression without a click, relevance and observation are imputed from the values so far:
P(relevant) = (1-o)·r/(1-o·r), P(observed) = (1-r)·o/(1-o·r). Both updates use the old values, as printed: so
it is the EM algorithm, and the likelihood never falls. Its steps are short where 1-o·r is near 1. Rounding may take a
value past 1 by its last digit, and 1-o·r below 0 with it; so both are kept at 1.
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

_EDGE = 1e-3
"""The least distance of a start from 0 and 1, which EM cannot leave."""

Variant = Literal["paper", "public"]


class RegressionEM(Estimator):
    """p = r(x)·o(t) with r and o probabilities, by expectation and maximisation.

    `tolerance`: on the distance still to go, in propensities and relevances. `start`: None draws both
    uniformly from [0, 1]; given propensities (0 and 1 are moved inwards: EM cannot leave them), relevance starts
    from 1/2. `variant`: "public" is what the
    identifiability paper's code does: relevance is the mean of c/o, clipped to [0, 1], and propensities are
    updated from it.
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
            raise EluteError(f"no variant '{self.variant}' of Regression-EM; there are: paper, public")
        rng = np.random.default_rng(self.seed)
        o = np.clip(self._start_propensities(problem, rng.random(problem.n_factors)), _EDGE, 1 - _EDGE)
        r = rng.random(problem.n_items) if self.start is None else np.full(problem.n_items, 0.5)
        shown = total_by_factor(problem.cells.factor, problem.cells.impressions, problem.n_factors)
        step = _step if self.variant == "paper" else _public_step
        end = iterate(partial(step, *problem.cells, shown), o, r, self.tolerance, self.max_iter, self.progress)
        value = log_likelihood(*problem.cells, end.relevance, end.propensity)
        return Solution(end.propensity, end.relevance, value, end.iterations, not end.reason, end.reason)


@jit
def _step(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    shown: Floats,
    o: Floats,
    r: Floats,
) -> tuple[Floats, Floats]:
    """One EM step; `shown` holds the impressions of every factor."""
    observed = np.zeros_like(o)
    new_r = np.empty_like(r)
    for item in range(r.shape[0]):
        n = 0.0
        relevant = 0.0
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            c = float(clicks[cell])
            n += impressions[cell]
            neither = max(1.0 - o[t] * r[item], 1e-300)
            skips = (float(impressions[cell]) - c) / neither
            relevant += c + skips * (1.0 - o[t]) * r[item]
            observed[t] += c + skips * (1.0 - r[item]) * o[t]
        new_r[item] = min(relevant / n, 1.0)
    return np.minimum(observed / shown, 1.0), new_r


@jit
def _public_step(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    shown: Floats,
    o: Floats,
    r: Floats,
) -> tuple[Floats, Floats]:
    """Relevance by inverse propensity weighting; the propensities' EM step from the new relevance."""
    observed = np.zeros_like(o)
    new_r = np.empty_like(r)
    for item in range(r.shape[0]):
        n = 0.0
        weighted = 0.0
        for cell in range(offsets[item], offsets[item + 1]):
            n += impressions[cell]
            weighted += clicks[cell] / max(o[factor[cell]], 1e-300)
        new = min(weighted / n, 1.0)
        new_r[item] = new
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            c = float(clicks[cell])
            neither = max(1.0 - o[t] * new, 1e-300)
            observed[t] += c + (float(impressions[cell]) - c) / neither * (1.0 - new) * o[t]
    return np.minimum(observed / shown, 1.0), new_r

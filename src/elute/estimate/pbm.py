"""The position-based model by exact maximum likelihood.

EM and alternating least squares creep along a concave likelihood whose Hessian is known: a few Newton steps
(`elute.estimate.interior`) reach the maximum, on weakly connected logs too.

r and o are positive scales here, bound only by p = r·o ≤ 1 where something was shown. At the reported scale
(largest o = 1) the relevance of an item shown only under weak factors may come out above 1: a scale, not a
probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.estimate import boundary
from elute.estimate.base import Estimator, Solution, Start
from elute.estimate.interior import BARRIER, maximise
from elute.estimate.likelihood import log_likelihood
from elute.estimate.problem import Codes, Problem, by_factor
from elute.estimate.profile import alternate, fit_items
from elute.progress import Progress, silent

_POISSON_STEPS = 5


class PBM(Estimator):
    """p = r(x)·o(t) by exact maximum likelihood.

    `tolerance`: the distance to the maximum in standard errors at which to stop (the Newton decrement).
    Factors and items without a click have estimate 0. Where the maximum does not exist for some factors
    (`elute.estimate.boundary`), they and their items get NaN, `converged_` is false and `reason_` names them.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-4,
        max_iter: int = 200,
        start: Start = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)

    def _solve(self, problem: Problem) -> Solution:
        of_factor, of_item = boundary.parts(problem.cells, problem.n_factors)
        cells = boundary.restrict(problem.cells, of_factor, of_item)
        useful = boundary.informative(cells, of_factor, of_item)
        o = self._started(problem, np.ones(problem.n_factors))
        if self.start is None:
            o = alternate(*useful, o, _POISSON_STEPS)
        found = maximise(useful, o, self.tolerance, self.max_iter, self.progress)
        o = np.where(of_factor == boundary.NOWHERE, 0.0, np.exp(found.log_o))
        r = fit_items(*cells, o, BARRIER)
        value = log_likelihood(*cells, r, o)
        reasons = [found.reason] if found.reason else []
        apart = ~np.isin(of_factor, [boundary.NOWHERE, *_main_parts(problem, of_factor)])
        if apart.any():
            o[apart] = np.nan
            r[np.isin(of_item, of_factor[apart])] = np.nan
            reasons.append(
                f"{apart.sum():,} factors have no finite propensity beside the rest of their component, as no chain "
                f"of clicks ties them to it both ways: {problem.names(np.flatnonzero(apart))}"
            )
        return Solution(o, r, value, found.iterations, not reasons, "; ".join(reasons))


def _main_parts(problem: Problem, of_factor: Codes) -> NDArray[np.int64]:
    """For each component, its part with the most clicks: the one that is reported."""
    clicks = by_factor(problem.cells.factor, problem.cells.clicks, problem.n_factors)
    inside = np.flatnonzero(of_factor != boundary.NOWHERE)
    total = np.bincount(of_factor[inside], clicks[inside], minlength=problem.n_factors)
    best = inside[np.lexsort((of_factor[inside], -total[of_factor[inside]], problem.component[inside]))]
    return of_factor[best[np.unique(problem.component[best], return_index=True)[1]]].astype(np.int64)

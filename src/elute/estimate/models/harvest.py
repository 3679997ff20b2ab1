"""Intervention harvesting (Agarwal et al., 2019): propensities from items that were shown under several factors.

An item seen under factors k and k' is an experiment that nobody had to run. Over the items S(k, k') seen under both,
with any weights w that treat both sides alike, the weighted click rates A(k, k') = Σ w·(c/n at k) and A(k', k)
= Σ w·(c/n at k') have expectations o(k)·R and o(k')·R with the same R = Σ w·r: their ratio is that of the
propensities, whatever the items' relevance. No relevance is estimated on the way, so the result is a check of the
position-based model's by other means.

"pivot": every factor's ratio to one pivot. A factor that shares no clicks with the pivot takes the chain with the
fewest links; among those, the one of least Σ 1/A, roughly its variance.

"all-pairs": all ratios at once. With W = Σ w, the extremum estimator maximises over o and one R for each pair

    Σ A(k, k')·log(o(k)·R(k, k')) + (W(k, k') - A(k, k'))·log(1 - o(k)·R(k, k')),   R(k, k') = R(k', k).

That is the likelihood of the position-based model for a log whose items are the pairs, each seen W times under
both its factors; so its solver and what is known of its boundary serve here.

Weights: the paper's w = 1 lets every item count the same, however rarely it was seen. Here w = n·n'/(n + n') by
default (Mantel and Haenszel), which weighs an item by what it tells.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.errors import EluteError
from elute.estimate.models.base import Estimator, Solution, Start
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.harvest_errors import ComparedPairs, harvest_errors, pair_weight
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_factor
from elute.kernels.jit import jit
from elute.progress import Progress, silent

MOST_FACTORS = 5_000
"""Pairs of factors are kept in dense matrices, 200 MB each at this size, and errors need about six of them."""

_BELOW_ONE = 1 - 1e-9
"""Where a pair that was clicked every time stands: what is derived from it has a limit at 1."""

Method = Literal["pivot", "all-pairs"]
Weights = Literal["mantel-haenszel", "paper"]


class Harvest(Estimator):
    """Propensities from interventions harvested in the log; relevance is then clicks / Σ n·o.

    `method`, `weights`: see this module's text. `pivot`: the code of the factor to compare with; None, and in the
    components it is not in: the one that shares the most weight with others. `tolerance`, `max_iter`
    and `start` are those of `PBM`, for all pairs; pivot ratios are in closed form.

    Each component is at its own scale. A factor alone in its component has propensity 1, one without clicks 0. A
    factor with clicks that no chain of pairs ties to the rest gets NaN, and `reason_` names it; items count their
    other factors only. Nothing holds r·o below 1, so `log_likelihood_` may be -inf. `log_se`: binomial errors of the
    cells carried through the estimator (`elute.estimate.solve.harvest_errors`).
    """

    def __init__(
        self,
        *,
        method: Method = "all-pairs",
        weights: Weights = "mantel-haenszel",
        pivot: int | None = None,
        seed: int = 0,
        tolerance: float = 1e-4,
        max_iter: int = 200,
        start: Start = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)
        self.method = method
        self.weights = weights
        self.pivot = pivot

    def _solve(self, problem: Problem) -> Solution:
        self._check(problem)
        self.progress("fitting", 0, self.max_iter if self.method == "all-pairs" else 1)
        pairs = Pairs(*_sum_pairs(*problem.cells, self.weights == "paper", problem.n_factors))
        clicks = total_by_factor(problem.cells.factor, problem.cells.clicks, problem.n_factors)
        if self.method == "pivot":
            pivot = None if self.pivot is None else int(problem.merged[self.pivot])
            (o, self._links), iterations, reason = estimate_by_pivot(pairs, problem.component, pivot), 1, ""
        else:
            model = PBM(
                tolerance=self.tolerance,
                max_iter=self.max_iter,
                start=self.start,
                progress=self.progress,
                relevance_prior="none",
            )
            o, self._links, iterations, reason = estimate_by_all_pairs(pairs, problem, model)
        o[~pairs.weight.any(axis=1)] = 1.0
        lost = (clicks > 0) & (o == 0)
        o[lost], o[clicks == 0] = np.nan, 0.0
        if lost.any():
            why = "factors have no chain of clicks on shared items to the rest of their component"
            reasons = [reason] if reason else []
            reason = "; ".join([*reasons, f"{lost.sum():,} {why}: {problem.name_factors(np.flatnonzero(lost))}"])
        r = _divide_by_reach(*problem.cells, o)
        value = log_likelihood(*_hide_unknown(problem.cells, o), np.nan_to_num(r), np.nan_to_num(o))
        return Solution(o, r, value, iterations, not reason, reason)

    def _check(self, problem: Problem) -> None:
        if self.method not in ("pivot", "all-pairs"):
            raise EluteError(f"no harvesting method '{self.method}'; there are: pivot, all-pairs")
        if self.weights not in ("mantel-haenszel", "paper"):
            raise EluteError(f"no harvesting weights '{self.weights}'; there are: mantel-haenszel, paper")
        if self.pivot is not None and not 0 <= self.pivot < len(problem.merged):
            raise EluteError(
                f"`pivot=` must be the code of a factor, 0 to {len(problem.merged) - 1:,}, not {self.pivot}"
            )
        if problem.n_factors > MOST_FACTORS:
            raise EluteError(
                f"harvesting compares all pairs of factors, up to {MOST_FACTORS:,}; this log has "
                f"{problem.n_factors:,}; use fewer bias columns, or the model pbm"
            )

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        return harvest_errors(problem, self._links, self.weights == "paper", propensity, relevance)


class Pairs(NamedTuple):
    """Factor × factor: `clicked` [k, k'] = A(k, k'), and `weight` = W."""

    clicked: Floats
    weight: Floats


def estimate_by_pivot(pairs: Pairs, component: Codes, pivot: int | None) -> tuple[Floats, ComparedPairs]:
    """o by chains of ratios to each component's pivot, which has 1, and the links used; 0 where there is no chain."""
    linked = (pairs.clicked > 0) & (pairs.clicked.T > 0)
    with np.errstate(divide="ignore"):
        length = np.where(linked, 1 / pairs.clicked + 1 / pairs.clicked.T, np.inf)
    strength = np.where(linked, pairs.weight, 0.0).sum(axis=1)
    if pivot is not None:
        strength[pivot] = np.inf
    best = np.lexsort((-pairs.clicked.sum(axis=1), -strength, component))
    frontier = best[np.unique(component[best], return_index=True)[1]]
    o, distance, parent = np.zeros(len(component)), np.full(len(component), np.inf), np.full(len(component), -1)
    o[frontier], distance[frontier] = 1.0, 0.0
    while len(frontier):
        reach = length[:, frontier] + distance[frontier]
        nearest = frontier[reach.argmin(axis=1)]
        new = np.flatnonzero(np.isinf(distance) & np.isfinite(reach.min(axis=1)))
        parent[new] = nearest[new]
        distance[new] = reach.min(axis=1)[new]
        o[new] = o[parent[new]] * pairs.clicked[new, parent[new]] / pairs.clicked[parent[new], new]
        frontier = new
    child = np.flatnonzero(parent >= 0)
    up = parent[child]
    return o, ComparedPairs(child, up, 1 / pairs.clicked[child, up], 1 / pairs.clicked[up, child], np.ones(len(child)))


def estimate_by_all_pairs(pairs: Pairs, problem: Problem, model: PBM) -> tuple[Floats, ComparedPairs, int, str]:
    """o by the extremum estimator, its links, the iterations, and why it failed (or ""); 0 without clicks in pairs."""
    first, second = np.nonzero(np.triu(pairs.weight))
    if not len(first):
        return np.zeros(problem.n_factors), ComparedPairs.without_weight(first, second), 1, ""
    weight = pairs.weight[first, second]
    cells = Cells(
        np.arange(0, 2 * len(first) + 1, 2),
        np.stack((first, second), axis=1).astype(np.int32).ravel(),
        cast(Amounts, np.repeat(weight, 2)),
        cast(Amounts, np.stack((pairs.clicked[first, second], pairs.clicked[second, first]), axis=1).ravel()),
    )
    found = model._solve(Problem(cells, problem.merged, problem.component, problem.factors))
    p, q = (np.minimum(found.relevance * found.propensity[side], _BELOW_ONE) for side in (first, second))
    kept = (p > 0) & (q > 0)
    first, second, weight, p, q = first[kept], second[kept], weight[kept], p[kept], q[kept]
    at_p, at_q = weight * p / (1 - p), weight * q / (1 - q)
    both = at_p + at_q
    links = ComparedPairs(first, second, at_q / both / (1 - p), at_p / both / (1 - q), at_p * at_q / both)
    return found.propensity, links, max(found.iterations, 1), found.reason


@jit
def _sum_pairs(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, equal: bool, n_factors: int
) -> tuple[Floats, Floats]:
    """A and W of all pairs of factors. Items × their factors² steps, factors² memory."""
    clicked = np.zeros((n_factors, n_factors))
    weight = np.zeros((n_factors, n_factors))
    for item in range(offsets.shape[0] - 1):
        for a in range(offsets[item], offsets[item + 1]):
            for b in range(a + 1, offsets[item + 1]):
                n, m = float(impressions[a]), float(impressions[b])
                w = pair_weight(n, m, equal)
                weight[factor[a], factor[b]] += w
                weight[factor[b], factor[a]] += w
                clicked[factor[a], factor[b]] += w * (clicks[a] / n)
                clicked[factor[b], factor[a]] += w * (clicks[b] / m)
    return clicked, weight


@jit
def _divide_by_reach(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats
) -> Floats:
    """clicks / Σ n·o of every item, over the factors whose o is a number; NaN where there is none."""
    out = np.full(offsets.shape[0] - 1, np.nan)
    for item in range(out.shape[0]):
        total = 0.0
        reach = 0.0
        known = False
        for cell in range(offsets[item], offsets[item + 1]):
            if not np.isnan(o[factor[cell]]):
                known = True
                total += clicks[cell]
                reach += impressions[cell] * o[factor[cell]]
        if reach > 0.0:
            out[item] = total / reach
        elif known and total == 0.0:
            out[item] = 0.0
    return out


def _hide_unknown(cells: Cells, o: Floats) -> Cells:
    """Cells with nothing shown where o is no number."""
    hidden = np.isnan(o)[cells.factor]
    if not hidden.any():
        return cells
    impressions, clicks = (np.where(hidden, np.zeros_like(v), v) for v in cells[2:])
    return Cells(cells.offsets, cells.factor, impressions, clicks)

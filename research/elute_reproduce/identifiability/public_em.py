"""Regression-EM by the public code's step, for as many steps as that code takes: 100,000.

The same updates as `RegressionEM(variant="public")`. There relevance is the mean of c/o, kept at 1 or less, so that
propensities alone are iterated; and an item shown under one factor adds n·o to that factor's examined impressions where
c/n <= o, and c where not.
"""

from __future__ import annotations

import numpy as np

from elute.estimate.models.base import Solution
from elute.estimate.models.em import RegressionEM
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Floats, Problem, total_by_factor
from elute.kernels.jit import jit
from elute_reproduce.identifiability.lone import Lone, Several, split

STEPS = 100_000
_EDGE = 1e-3
"""As in `RegressionEM`: the least distance of a start from 0 and 1."""


class PublicEM(RegressionEM):
    """All of `max_iter` steps are taken: the public code has no other stop."""

    def __init__(self, *, seed: int = 0, max_iter: int = STEPS) -> None:
        super().__init__(seed=seed, max_iter=max_iter, variant="public")

    def _solve(self, problem: Problem) -> Solution:
        offsets, factor, impressions, clicks = problem.cells
        drawn = np.random.default_rng(self.seed).random(problem.n_factors)
        o = np.clip(self._start_propensities(problem, drawn), _EDGE, 1 - _EDGE)
        shown = total_by_factor(factor, impressions, problem.n_factors)
        o, before, moved = _iterate(*split(problem), shown, o, self.max_iter)
        item = np.repeat(np.arange(problem.n_items), np.diff(offsets))
        relevance = np.minimum(np.bincount(item, clicks / before[factor]) / np.bincount(item, impressions), 1.0)
        value = log_likelihood(*problem.cells, relevance, o)
        reason = "" if moved <= self.tolerance else f"stopped after {self.max_iter:,} iterations"
        return Solution(o, relevance, value, self.max_iter, not reason, reason)


@jit
def _iterate(lone: Lone, several: Several, shown: Floats, o: Floats, steps: int) -> tuple[Floats, Floats, float]:
    """Propensities after all steps and before the last, and how far the last hundredth of the steps moved them."""
    observed = np.empty_like(o)
    before, earlier = o, o
    for step in range(steps):
        if step == steps - 1 - steps // 100:
            earlier = o
        for t in range(o.shape[0]):
            first, last = lone.starts[t], lone.starts[t + 1]
            seen = first + np.searchsorted(lone.rate[first:last], o[t], side="right")
            observed[t] = o[t] * (lone.shown[seen] - lone.shown[first]) + lone.clicks[last] - lone.clicks[seen]
        for item in range(several.offsets.shape[0] - 1):
            weighted, total = 0.0, 0.0
            for cell in range(several.offsets[item], several.offsets[item + 1]):
                weighted += several.clicks[cell] / max(o[several.factor[cell]], 1e-300)
                total += several.impressions[cell]
            r = min(weighted / total, 1.0)
            for cell in range(several.offsets[item], several.offsets[item + 1]):
                t, c = several.factor[cell], several.clicks[cell]
                skipped = (several.impressions[cell] - c) / max(1.0 - o[t] * r, 1e-300)
                observed[t] += c + skipped * (1.0 - r) * o[t]
        before, o = o, np.minimum(observed / shown, 1.0)
    return o, before, np.abs(o - earlier).max()

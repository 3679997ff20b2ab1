"""DLA as the paper writes it, fast enough for hundreds of fits of 20,000 steps.

The same updates as `DLA`: relevance is Σ c·o / Σ n·o², propensity Σ c·r / Σ n·r², both kept at 1 or less. An item shown
under one factor adds c·(c/n)/o and c·(c/n)/o² to these sums of its factor where c/n <= o, and c and n where not.
"""

from __future__ import annotations

import numpy as np

from elute.estimate.models.base import Solution
from elute.estimate.models.dla import DLA
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Floats, Problem
from elute.kernels.jit import jit
from elute_reproduce.identifiability.lone import Lone, Several, split


class QuickDLA(DLA):
    """Every factor needs clicks. It stops by the rule of `DLA`, with a bound in place of how far relevances move."""

    def _solve(self, problem: Problem) -> Solution:
        offsets, factor, impressions, clicks = problem.cells
        o = self._start_propensities(problem, np.random.default_rng(self.seed).random(problem.n_factors))
        o, before, steps, ahead = _iterate(*split(problem), o, self.tolerance, self.max_iter)
        item = np.repeat(np.arange(problem.n_items), np.diff(offsets))
        seen = before[factor]
        relevance = np.minimum(np.bincount(item, clicks * seen) / np.bincount(item, impressions * seen**2), 1.0)
        value = log_likelihood(*problem.cells, relevance, o)
        reason = "" if ahead <= self.tolerance else f"stopped after {self.max_iter:,} iterations"
        return Solution(o, relevance, value, steps, not reason, reason)


@jit
def _iterate(
    lone: Lone, several: Several, o: Floats, tolerance: float, steps: int
) -> tuple[Floats, Floats, int, float]:
    """Propensities at the end and one step before, the steps taken, and about how far the end still is."""
    last_change, ahead, taken, before = np.inf, np.inf, 0, o
    while taken < steps and ahead > tolerance:
        over, under = np.zeros_like(o), np.zeros_like(o)
        for t in range(o.shape[0]):
            first, last = lone.starts[t], lone.starts[t + 1]
            seen = first + np.searchsorted(lone.rate[first:last], o[t], side="right")
            product = lone.product[seen] - lone.product[first]
            over[t] = product / o[t] + lone.clicks[last] - lone.clicks[seen]
            under[t] = product / o[t] ** 2 + lone.shown[last] - lone.shown[seen]
        for item in range(several.offsets.shape[0] - 1):
            product, square = 0.0, 0.0
            for cell in range(several.offsets[item], several.offsets[item + 1]):
                product += several.clicks[cell] * o[several.factor[cell]]
                square += several.impressions[cell] * o[several.factor[cell]] ** 2
            r = min(product / square, 1.0)
            for cell in range(several.offsets[item], several.offsets[item + 1]):
                over[several.factor[cell]] += several.clicks[cell] * r
                under[several.factor[cell]] += several.impressions[cell] * r**2
        before, o = o, np.minimum(over / under, 1.0)
        change = np.abs(o / before - 1).max()  # r = c/(n·o) <= 1 moves by no more, and o by less
        ahead = change * change / (last_change - change) if change < last_change < np.inf else np.inf
        if change <= 1e-15:
            ahead = 0.0
        last_change = change
        taken += 1
    return o, before, taken, ahead

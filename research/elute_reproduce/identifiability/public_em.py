"""Regression-EM by the public code's step, for as many steps as that code takes: 100,000.

The same updates as `RegressionEM(variant="public")`. There relevance is the mean of c/o, kept at 1 or less, so that
propensities alone are iterated; and an item shown under one factor adds n·o to that factor's examined impressions where
c/n <= o, and c where not (then r = 1). A sorted list of click rates says all of these items. Only the others, a tenth
of the paper's documents, are visited in every step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute._util.offsets import take_groups
from elute.estimate.models.base import Solution
from elute.estimate.models.em import RegressionEM
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_factor
from elute.kernels.jit import jit

Ints = NDArray[np.int64]

STEPS = 100_000
_EDGE = 1e-3
"""As in `RegressionEM`: the least distance of a start from 0 and 1."""


class PublicEM(RegressionEM):
    """All of `max_iter` steps are taken: the public code has no other stop."""

    def __init__(self, *, seed: int = 0, max_iter: int = STEPS) -> None:
        super().__init__(seed=seed, max_iter=max_iter, variant="public")

    def _solve(self, problem: Problem) -> Solution:
        offsets, factor, impressions, clicks = problem.cells
        n, c = impressions.astype(np.float64), clicks.astype(np.float64)
        drawn = np.random.default_rng(self.seed).random(problem.n_factors)
        o = np.clip(self._start_propensities(problem, drawn), _EDGE, 1 - _EDGE)
        cells = np.diff(offsets)
        lone, several = np.flatnonzero(cells == 1), np.flatnonzero(cells > 1)
        at = offsets[lone]
        order = at[np.lexsort((c[at] / n[at], factor[at]))]
        starts = np.searchsorted(factor[order], np.arange(problem.n_factors + 1))
        places, ends = take_groups(offsets, several)
        o, before, moved = _iterate(
            (starts, c[order] / n[order], _sum_before(n[order]), _sum_before(c[order])),
            (ends, factor[places], n[places], c[places]),
            total_by_factor(factor, impressions, problem.n_factors),
            o,
            self.max_iter,
        )
        item = np.repeat(np.arange(problem.n_items), cells)
        relevance = np.minimum(np.bincount(item, c / before[factor]) / np.bincount(item, n), 1.0)
        value = log_likelihood(*problem.cells, relevance, o)
        reason = "" if moved <= self.tolerance else f"stopped after {self.max_iter:,} iterations"
        return Solution(o, relevance, value, self.max_iter, not reason, reason)


def _sum_before(values: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(values)))


@jit
def _iterate(
    lone: tuple[Ints, Floats, Floats, Floats],
    several: tuple[Ints, Codes, Floats, Floats],
    shown: Floats,
    o: Floats,
    steps: int,
) -> tuple[Floats, Floats, float]:
    """Propensities after all steps and before the last, and how far the last hundredth of the steps moved them."""
    starts, rate, shown_before, clicks_before = lone
    offsets, factor, n, c = several
    observed = np.empty_like(o)
    before, earlier = o, o
    for step in range(steps):
        if step == steps - 1 - steps // 100:
            earlier = o
        for t in range(o.shape[0]):
            first, last = starts[t], starts[t + 1]
            seen = first + np.searchsorted(rate[first:last], o[t], side="right")
            observed[t] = o[t] * (shown_before[seen] - shown_before[first]) + clicks_before[last] - clicks_before[seen]
        for item in range(offsets.shape[0] - 1):
            weighted, total = 0.0, 0.0
            for cell in range(offsets[item], offsets[item + 1]):
                weighted += c[cell] / max(o[factor[cell]], 1e-300)
                total += n[cell]
            r = min(weighted / total, 1.0)
            for cell in range(offsets[item], offsets[item + 1]):
                t = factor[cell]
                observed[t] += c[cell] + (n[cell] - c[cell]) / max(1.0 - o[t] * r, 1e-300) * (1.0 - r) * o[t]
        before, o = o, np.minimum(observed / shown, 1.0)
    return o, before, np.abs(o - earlier).max()

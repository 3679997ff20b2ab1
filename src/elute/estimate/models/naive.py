"""No debiasing: relevance is the click rate, as if every factor were observed alike."""

from __future__ import annotations

import numpy as np

from elute.estimate.models.base import Estimator, Solution
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Floats, Problem, total_by_item
from elute.identify.information import information


class Naive(Estimator):
    """The "No debias" row of the identifiability paper's tables: clicks / impressions of every item."""

    propensities_are = "ignored"

    def _solve(self, problem: Problem) -> Solution:
        cells = problem.cells
        rate = total_by_item(cells.offsets, cells.clicks) / total_by_item(cells.offsets, cells.impressions)
        ones = np.ones(problem.n_factors)
        return Solution(ones, rate, log_likelihood(*cells, rate, ones), 1, True, "")

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """Propensities are assumed, not estimated; a click rate has the binomial error of its logarithm."""
        known = information(total_by_item(problem.cells.offsets, problem.cells.impressions), relevance)
        with np.errstate(divide="ignore"):
            return np.zeros(problem.n_factors), np.where(known > 0, 1 / np.sqrt(known), np.nan)

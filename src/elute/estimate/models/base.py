"""The shape all estimators share: the constructor stores parameters, `fit` returns self, results end in `_`.

Scale is fixed here, for every model alike: within a component only ratios of propensities are determined
(Theorem 1), so the largest propensity that is measured well is set to 1, and relevance takes up the factor.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple, NoReturn, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.models import describe_parameters, refuse_attribute
from elute.cells.counts import Counts, sum_by_item
from elute.errors import EluteError, NotRecoverable
from elute.estimate.priors.gamma import Population, fit_population, know_items
from elute.estimate.solve.problem import (
    Codes,
    Floats,
    MergingPlan,
    Problem,
    find_scales,
    pose,
    total_by_factor,
)
from elute.estimate.solve.standard_errors import log_errors
from elute.log import LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent

Start = float | NDArray[np.float64] | None


class Solution(NamedTuple):
    """What a model found, at whatever scale, by factor and item of a `Problem`."""

    propensity: Floats
    relevance: Floats
    log_likelihood: float
    iterations: int
    converged: bool
    reason: str


class Estimator(ABC):
    """Propensities of factors and relevance of items from a log or its counts.

    `seed`: of random starts. `tolerance` and `max_iter`: when to stop; each model says what it measures.
    `start`: propensities to start from, one number for all or an array by factor; None: the model's own
    choice. `progress`: told of every iteration.

    Fitted: `factors_` (the bias columns); `propensity_` by factor and `relevance_values_` by item (codes of the
    counts), `component_` by factor, `iterations_`, `converged_`, `reason_` (why it did not, in words),
    `log_likelihood_`, `seconds_`.
    `solution_` keeps what the model found at its own scale: with several components, how these stand to each
    other is decided by the start, not by the data. Standard errors and the tables `propensities_` and
    `relevance_` are computed when first asked for.
    """

    propensities_are: ClassVar[Literal["estimated", "given", "ignored"]] = "estimated"
    """Where propensities come from. Of a log in several components, those that are given put all on one scale, and
    where they are ignored there is nothing to compare: neither is refused."""

    takes_formula: ClassVar[bool] = False
    """Whether propensities may be tied by a formula over the bias columns."""

    has_posteriors: ClassVar[bool] = True
    """Whether clicks are r·o, so that `elute.estimate.priors.gamma` says how surely each item is known."""

    @takes()
    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-6,
        max_iter: int = 20_000,
        start: Start = None,
        progress: Progress = silent,
    ) -> None:
        self.seed = seed
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.start = start
        self.progress = progress

    def _pose(self, counts: Counts, plan: MergingPlan | None) -> Problem:
        return pose(counts, plan)

    @abstractmethod
    def _solve(self, problem: Problem) -> Solution:
        """Fit the model; the scale does not matter."""

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """log_se by factor and by item of `problem`: maximum likelihood's, unless a model knows better."""
        return log_errors(problem, propensity, relevance)

    def _rescale(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """What is reported of what was found."""
        return rescale(problem, propensity, relevance)

    def fit(self, source: LogSource, plan: MergingPlan | None = None, *, allow_unidentified: bool = False) -> Self:
        """Estimate from a log, its counts, or whatever `elute.read_log` takes. Factors that `plan` joins share one
        propensity. Where several components are left, between which nothing can be compared, `allow_unidentified`
        must say that this is meant."""
        counts = source if isinstance(source, Counts) else as_log(source).counts(self.progress, names=True)
        began = time.perf_counter()
        problem = self._pose(counts, plan)
        if problem.design is not None and not self.takes_formula and self.propensities_are != "ignored":
            raise EluteError(
                f"`bias=` is the formula '{problem.design.formula}', which only pbm fits; join the columns by commas"
            )
        if not allow_unidentified and self.propensities_are == "estimated":
            refuse_unidentified(problem.component)
        found = self._solve(problem)
        propensity, relevance = self._rescale(problem, found.propensity, found.relevance)
        self.propensity_ = propensity[problem.merged]
        self.relevance_values_ = relevance
        self.component_ = problem.component[problem.merged]
        self.iterations_ = found.iterations
        self.converged_ = found.converged
        self.reason_ = found.reason
        self.log_likelihood_ = found.log_likelihood
        self.solution_ = found
        self.seconds_ = time.perf_counter() - began
        self.factors_ = counts.factors
        self._counts, self._problem, self._scaled = counts, problem, propensity
        self._log_se: tuple[Floats, Floats] | None = None
        self._effect: Floats | None = None
        self._merged = problem.merged
        self._shown = total_by_factor(problem.cells.factor, problem.cells.impressions, problem.n_factors)
        return self

    def __getattr__(self, name: str) -> NoReturn:
        refuse_attribute(self, name, "fit(log)")

    def __repr__(self) -> str:
        return describe_parameters(self)

    @property
    def own_propensity_(self) -> Floats:
        """By factor, at the scale the model itself ended at (see `solution_`)."""
        return np.asarray(self.solution_.propensity[self._problem.merged])

    @property
    def propensity_log_se_(self) -> Floats:
        """Standard error of log(propensity / the component's largest), by factor; NaN where there is none."""
        return self._compute_errors()[0]

    @property
    def relevance_log_se_(self) -> Floats:
        """Standard error of log relevance at this scale, by item; NaN where there is none."""
        return self._compute_errors()[1]

    @property
    def propensities_(self) -> pa.Table:
        """Bias columns, `component, propensity, log_se`; one row a factor. `log_se_clusters`: for clicks that depend on
        each other, where that was measured."""
        columns = {"component": self.component_, "propensity": self.propensity_, "log_se": self.propensity_log_se_}
        if self._effect is not None:
            columns["log_se_clusters"] = self.propensity_log_se_ * np.sqrt(self._effect)
        return _append_columns(self.factors_, columns)

    @property
    def relevance_(self) -> pa.Table:
        """Item columns, `component, relevance, log_se, impressions, clicks`; one row an item. And of its posterior,
        which is a Gamma distribution, `shape, rate, evidence` (`elute.estimate.priors.gamma`)."""
        counts = self._counts
        columns = {
            "component": self._problem.item_component,
            "relevance": self.relevance_values_,
            "log_se": self.relevance_log_se_,
            "impressions": counts.item_impressions,
            "clicks": sum_by_item(counts.offsets, counts.clicks),
        }
        if self.has_posteriors:
            columns |= know_items(self._problem.cells, self._scaled, self._merged_log_se, self.population_)._asdict()
        return _append_columns(counts.items, columns)

    def relevance_parts(self) -> Iterator[pa.Table]:
        """`relevance_`, in as many tables as it takes to keep to memory."""
        yield self.relevance_

    @property
    def population_(self) -> Population:
        """The distribution of relevance over all items, as the posteriors of `relevance_` take it."""
        problem = self._problem
        return fit_population(problem.cells, self._scaled, self._merged_log_se, problem.component)

    @property
    def alone_(self) -> tuple[float, float]:
        """Shape and rate of what an item is compared with that has no other to be compared with."""
        return self.population_.overall(self._shown)

    @property
    def _merged_log_se(self) -> Floats:
        """By factor of the problem, with what clusters add."""
        errors = self.propensity_log_se_ * (1.0 if self._effect is None else np.sqrt(self._effect))
        return np.asarray(errors[np.unique(self._merged, return_index=True)[1]])

    def report_dependence(self, effect: Floats) -> None:
        """Say how much larger variances of log propensities are than for independent clicks, by factor of the log."""
        self._effect = effect

    def report_errors(self, of_factors: Floats, of_items: Floats) -> None:
        """Report these standard errors, a bootstrap's for instance, by factor and item of the log."""
        self._log_se = of_factors, of_items

    def _compute_errors(self) -> tuple[Floats, Floats]:
        if self._log_se is None:
            of_factors, of_items = self._errors(self._problem, self._scaled, self.relevance_values_)
            self._log_se = of_factors[self._problem.merged], of_items
        return self._log_se

    def _start_propensities(self, problem: Problem, otherwise: Floats) -> Floats:
        """The propensities to start from, by factor of `problem`."""
        if self.start is None:
            return otherwise
        return start_propensities(self.start, problem.merged)


def refuse_unidentified(component: NDArray[np.integer]) -> None:
    """Raise an error where factors lie in more than one component; these are numbered from 0."""
    if component.max(initial=0) > 0:
        raise NotRecoverable(int(component.max()) + 1)


def start_propensities(start: float | Floats, merged: Codes) -> Floats:
    """Propensities to start from, by merged factor: the mean of its members'."""
    given = np.asarray(start, np.float64)
    if given.shape not in ((), merged.shape) or not (given > 0).all():
        raise EluteError(f"`start=` must be a number above 0, or one for each of the {len(merged):,} factors")
    return np.asarray(np.bincount(merged, np.broadcast_to(given, merged.shape)) / np.bincount(merged))


def rescale(problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
    """The largest propensity of each component becomes 1, of those that are measured well (`find_reliable`); a
    component without any above 0 stays as it is."""
    largest = find_scales(propensity, problem.component, problem.reliable)
    return propensity / largest[problem.component], relevance * largest[problem.item_component]


def _append_columns(table: pa.Table, columns: Mapping[str, object]) -> pa.Table:
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table

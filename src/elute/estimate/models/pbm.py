"""The position-based model by exact maximum likelihood, with priors where the clicks are few.

EM and alternating least squares creep along a concave likelihood whose Hessian is known: a few Newton steps
(`elute.estimate.solve.interior`) reach the maximum, on weakly connected logs too.

r and o are positive scales here, bound only by p = r·o ≤ 1 where something was shown. At the reported scale
(largest o = 1) the relevance of an item shown only under weak factors may come out above 1: a scale, not a
probability (with a prior on relevance it is one).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from elute.cells.counts import Cells, Counts
from elute.cells.partitions import Partitions
from elute.errors import EluteError
from elute.estimate.models.base import Estimator, Solution, Start, refuse_unidentified, rescale, start_propensities
from elute.estimate.models.found import Factors, Priors
from elute.estimate.models.tied import find_tied_errors, fit_tied
from elute.estimate.models.untied import fit_smoothed, fit_untied
from elute.estimate.partitioned import fit
from elute.estimate.partitioned.fit import FitByPartition
from elute.estimate.priors.beta import Beta, Posterior, fit_beta, posterior
from elute.estimate.priors.criterion import choose_criterion
from elute.estimate.priors.gamma import Population
from elute.estimate.priors.smooth import build_smooth_prior
from elute.estimate.solve import conditional
from elute.estimate.solve.effect_errors import EffectErrors
from elute.estimate.solve.effect_table import tabulate_effects
from elute.estimate.solve.interior import BARRIER
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Floats, MergingPlan, Problem, name_factors, number_merged, total_by_item
from elute.estimate.solve.profile import alternate, fit_items
from elute.estimate.solve.standard_errors import information, masses, variances
from elute.log import ClickLog, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent

FEW_CLICKS = 5
"""`relevance_prior="auto"` means "beta" where the median item has fewer."""

_POISSON_STEPS = 5


class PBM(Estimator):
    """p = r(x)·o(t) by exact maximum likelihood; log o is a sum of effects where a formula ties factors.

    `tolerance`: the distance to the maximum in standard errors at which to stop (the Newton decrement).
    Factors and items without a click have estimate 0. Where the maximum does not exist for some factors
    (`elute.estimate.solve.boundary`), they and their items get NaN, `converged_` is false and `reason_` names them.

    `prior="smooth"`: log-propensities of neighbouring positions and of contexts are alike
    (`elute.estimate.priors.smooth`), as much as held-out clicks say (`seed` splits them). For logs that few items hold
    together. It is fitted jointly, and `log_se` is that of the posterior at these strengths: the prior's word
    counts as information. Every factor then has a finite propensity. Components stay what the check says, each
    at its own scale: across them only the prior speaks. `log_se` is NaN where it alone ties a factor to its
    reference.

    `relevance_prior="beta"`: for logs whose items have few clicks. A relevance is the mean of its posterior under
    a Beta distribution fitted to all items (`elute.estimate.priors.beta`), and `log_se` that posterior's. The
    prior has no say in propensities; they maximise the conditional likelihood given every item's clicks
    (`elute.estimate.solve.conditional`), as the full one is biased on such logs. "auto": "beta" where the median item
    has fewer than 5 clicks, else "none": maximum likelihood.

    Fitted: `prior_`, what was chosen: {"smooth": strengths by name or None, "relevance": {"a", "b"} or None}.
    """

    takes_formula = True

    @takes()
    def __init__(
        self,
        *,
        seed: int = 0,
        tolerance: float = 1e-4,
        max_iter: int = 200,
        start: Start = None,
        progress: Progress = silent,
        prior: Literal["smooth"] | None = None,
        relevance_prior: Literal["auto", "beta", "none"] = "auto",
    ) -> None:
        super().__init__(seed=seed, tolerance=tolerance, max_iter=max_iter, start=start, progress=progress)
        self.prior = prior
        self.relevance_prior = relevance_prior
        self._shrinks, self._warm = relevance_prior == "beta", False
        self._held_priors: tuple[dict[str, float] | None, Beta | None] | None = None
        self._strengths: dict[str, float] | None = None
        self._root: csr_array | None = None
        self._by_partition: FitByPartition | None = None
        self._last_posterior: tuple[Problem, Beta, Floats, Posterior] | None = None
        self._effect_errors: EffectErrors | None = None

    @property
    def prior_(self) -> Priors:
        """The priors in use and their parameters, as JSON can hold them."""
        return {"smooth": self._strengths, "relevance": None if self._beta is None else self._beta._asdict()}

    @property
    def by_partition(self) -> bool:
        """Whether cells in partitions will do; a smooth prior needs all of them at once."""
        return self.prior is None and self._held_priors is None

    def start_warm(self, start: Floats) -> None:
        """Start from the propensities of nearly the same log, by factor, and end at the same fit to six digits."""
        self.start, self._warm = start, True

    def copy_for_refit(self) -> Self:
        """An unfitted model that starts from this fit and keeps its priors: to refit resampled clicks."""
        other = copy.copy(self)
        usable = np.isfinite(self.propensity_) & (self.propensity_ > 0)
        other.start = np.where(usable, self.propensity_, 1.0)
        other.progress, other._warm = silent, False
        other._held_priors = self._strengths, self._beta
        return other

    def fit(
        self, source: LogSource | Partitions, plan: MergingPlan | None = None, *, allow_unidentified: bool = False
    ) -> Self:
        """Estimate from a log, its counts, or cells in partitions, which a log has that was read with a memory limit
        (see `elute.estimate.partitioned.fit`).

        A fit by partition has no arrays by item: `relevance_parts` streams what there is to say of items."""
        self._by_partition = None
        given: LogSource = source if isinstance(source, Counts | Partitions) else as_log(source)
        partitions = given if isinstance(given, Partitions) else None
        if isinstance(given, ClickLog) and self.by_partition:
            partitions = given.partitions(self.progress)
        if partitions is None:
            return super().fit(given, plan, allow_unidentified=allow_unidentified)
        if not self.by_partition:
            raise EluteError("a smooth prior needs all cells at once: in memory, or without `prior='smooth'`")
        began = time.perf_counter()
        merged = number_merged(partitions.factors, plan)
        found = fit.fit(
            partitions,
            merged,
            wants_beta=lambda of: self._wants_beta(fit.median_clicks(of.items_by_clicks), of.clicked.any()),
            start=None if self.start is None else start_propensities(self.start, merged),
            tolerance=self.tolerance,
            max_iter=self.max_iter,
            warm=self._warm,
            progress=self.progress,
            names=lambda some: name_factors(partitions.factors, merged, some),
        )
        if not allow_unidentified:
            refuse_unidentified(found.fitted.component)
        for name in ("relevance_values_", "solution_"):
            vars(self).pop(name, None)  # of an earlier fit, by item
        self._by_partition, self._strengths, self._beta = found, None, found.fitted.beta
        self.propensity_ = found.fitted.propensity[merged]
        self.component_ = found.fitted.component[merged]
        self.iterations_, self.reason_, self.converged_ = found.iterations, found.reason, not found.reason
        self.log_likelihood_ = found.precision.log_likelihood
        self.seconds_ = time.perf_counter() - began
        self.factors_ = partitions.factors
        self._log_se = np.sqrt(found.log_variance)[merged], np.empty(0)
        self._effect, self._merged, self._shown = None, merged, found.shown
        return self

    @property
    def relevance_log_se_(self) -> Floats:
        """Standard error of log relevance at this scale, by item; NaN where there is none."""
        if self._by_partition is not None:
            raise EluteError("a fit by partition has no arrays by item; go through relevance_parts()")
        return super().relevance_log_se_

    @property
    def relevance_(self) -> pa.Table:
        """Item columns, `component, relevance, log_se, impressions, clicks`; one row an item."""
        return super().relevance_ if self._by_partition is None else pa.concat_tables(self.relevance_parts())

    def relevance_parts(self) -> Iterator[pa.Table]:
        """`relevance_`, in as many tables as it takes to keep to memory."""
        if self._by_partition is None:
            return super().relevance_parts()
        return self._by_partition.iterate_relevance(self._merged_log_se)

    @property
    def population_(self) -> Population:
        """The distribution of relevance over all items, as the posteriors of `relevance_` take it."""
        found = self._by_partition
        return super().population_ if found is None else found.find_population(self._merged_log_se)

    def _solve(self, problem: Problem) -> Solution:
        clicks = total_by_item(problem.cells.offsets, problem.cells.clicks)
        self._shrinks = self._wants_beta(float(np.median(clicks)), clicks.any())
        found = self.fit_factors(problem)
        self._beta = self._fit_beta(problem, found) if self._shrinks else None
        if self._beta is None:
            r = fit_items(*found.cells, found.o, BARRIER)
        else:
            r = self.estimate_items(problem, np.where(found.apart, 0.0, found.o))
            if found.lost.any():
                r = np.where(found.lost, fit_items(*found.cells, found.o, BARRIER), r)
        value = log_likelihood(*found.cells, r, found.o)
        o = np.where(found.apart, np.nan, found.o)
        r = np.where(found.lost, np.nan, r)
        return Solution(o, r, value, found.iterations, not found.reason, found.reason)

    def fit_factors(self, problem: Problem) -> Factors:
        """The propensities alone."""
        if self.prior not in (None, "smooth"):
            raise EluteError(f"no prior '{self.prior}' on propensities; there is: smooth")
        self._strengths, self._root, self._effect_errors = None, None, None
        terms = build_smooth_prior(problem) if self.prior == "smooth" and problem.design is None else None
        limits = self.tolerance, self.max_iter, self.progress
        by = choose_criterion(self._shrinks, self._warm)
        held = self._held_priors[0] if self._held_priors else None
        if problem.design is not None:
            if self.prior is not None:
                raise EluteError("a formula says itself what is smooth: write smooth(…) there, not `prior='smooth'`")
            start = None if self.start is None else start_propensities(self.start, problem.merged)
            found = fit_tied(problem, by, start, held, self.seed, *limits)
        elif terms is None or not terms.terms:
            return fit_untied(problem, by, self._choose_start, *limits)
        else:
            found = fit_smoothed(problem, terms, by, self._choose_start, held, self.seed, *limits)
        self._strengths, self._root = found.strengths, found.root
        return found.factors

    @property
    def effects_(self) -> pa.Table | None:
        """Of a formula: `term`, bias columns, `effect, log_se, reference, determined`; None without one."""
        if self._by_partition is not None:
            return self._by_partition.tabulate_effects()
        if (design := self._problem.design) and self._effect_errors is None:  # they come with those of factors
            self._errors(self._problem, self._scaled, self.relevance_values_)
        errors = self._effect_errors
        return errors and design and tabulate_effects(design, self._problem.component, self._scaled, errors)

    def estimate_items(self, problem: Problem, o: Floats) -> Floats:
        """Relevance at the scale of these propensities, with the prior on it if there is one."""
        if self._beta is None:
            return fit_items(*problem.cells, o, BARRIER)
        o, largest = rescale(problem, o, np.ones(problem.n_items))
        return np.asarray(self._find_posterior(problem, self._beta, o).mean[problem.equal.code] / largest)

    def _find_posterior(self, problem: Problem, prior: Beta, o: Floats) -> Posterior:
        """Of the items that stand for others; the last one is kept, since means and variances are asked for apart."""
        o = np.minimum(o, 1.0)
        known = self._last_posterior
        if known is None or known[0] is not problem or known[1] != prior or not np.array_equal(known[2], o):
            self._last_posterior = known = problem, prior, o, posterior(problem.cells, o, prior, problem.equal.first)
        return known[3]

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        known = problem, propensity, *self._weigh(problem, propensity, relevance), self._root
        found, self._effect_errors = (variances(*known), None) if problem.design is None else find_tied_errors(*known)
        del known  # two numbers a cell
        if self._beta is None:
            return np.sqrt(found.of_factors), np.sqrt(1.0 / found.mass + found.through_factors)
        own = self.item_log_variance(problem, propensity, relevance)
        share = np.minimum(found.mass * own, 1.0)
        return np.sqrt(found.of_factors), np.sqrt(own + share**2 * found.through_factors)

    def _weigh(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """The information of cells about propensities and about items: not the same where items were shrunk."""
        own = information(*problem.cells[:3], relevance, propensity)
        if self._beta is None:
            return own, own
        o, cells = np.nan_to_num(propensity), problem.cells
        r = np.where(np.isnan(relevance), 0.0, conditional.estimate_items(*cells, o))
        return conditional.expect_clicks(*cells[:3], r, o), own

    def item_log_variance(self, problem: Problem, propensity: Floats, relevance: Floats) -> Floats:
        """Of log relevance, for propensities that are known (and at most 1): what an item's own clicks leave open."""
        if self._beta is None:
            mass = masses(problem.cells.offsets, information(*problem.cells[:3], relevance, propensity))
            return 1.0 / np.where(mass > 0, mass, np.nan)
        own = self._find_posterior(problem, self._beta, np.nan_to_num(propensity)).log_variance
        return np.where(np.isnan(relevance), np.nan, own[problem.equal.code])

    def _wants_beta(self, median_clicks: float, any_clicks: np.bool_) -> bool:
        if self.relevance_prior not in ("auto", "beta", "none"):
            raise EluteError(f"no prior '{self.relevance_prior}' on relevance; there are: auto, beta, none")
        if self._held_priors:
            return self._held_priors[1] is not None
        few = {"beta": True, "auto": median_clicks < FEW_CLICKS, "none": False}
        return bool(few[self.relevance_prior] and any_clicks)

    def _fit_beta(self, problem: Problem, found: Factors) -> Beta:
        if self._held_priors and self._held_priors[1]:
            return self._held_priors[1]
        o = rescale(problem, np.where(found.apart, 0.0, found.o), np.ones(problem.n_items))[0]
        return fit_beta(problem.cells, np.minimum(o, 1.0), np.flatnonzero(~found.lost))

    def _choose_start(self, problem: Problem, cells: Cells) -> Floats:
        o = self._start_propensities(problem, np.ones(problem.n_factors))
        return alternate(*cells, o, _POISSON_STEPS) if self.start is None or self._warm else o

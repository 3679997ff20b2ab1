"""The position-based model fitted to cells that no machine holds at once.

In log o, with every item at its best relevance, the likelihood is concave, and all of its Newton system is a sum over
items: one round over the partitions gives value, gradient and matrix, and only those come back. Nothing is kept for an
item between rounds; its relevance follows from the propensities. (In memory, `elute.estimate.solve.interior` steps
items and propensities at once, which needs fewer rounds.) Cells clicked every time put kinks into that likelihood: they
have a little of an impression without a click, which is taken away step by step. Up to
`Partitions.dense_limit` factors the matrix is kept; beyond, conjugate gradients ask for its products, a round each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Cells
from elute.cells.partitions import Partitions
from elute.errors import EluteError
from elute.estimate.partitioned.items import (
    DESCRIPTION,
    DescriptionTask,
    FactorInformation,
    FactorInformationTask,
    FittedFactors,
    SampleTask,
    join_cells,
)
from elute.estimate.partitioned.precision import estimate_precision
from elute.estimate.partitioned.tied import tie_partitions
from elute.estimate.partitioned.work import Flags, LikelihoodTask, Outline, OutlineTask, ProductTask, Terms
from elute.estimate.priors.beta import fit_beta
from elute.estimate.priors.gamma import Population, fit_population
from elute.estimate.solve import boundary
from elute.estimate.solve.effect_errors import EffectErrors
from elute.estimate.solve.effect_table import tabulate_effects
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.interior import BARRIER, Maximum, describe_distance
from elute.estimate.solve.laplacian import LinearSolution, conjugate_gradients
from elute.estimate.solve.problem import Codes, Floats, find_reliable, find_scales, share_links
from elute.estimate.solve.standard_errors import DRAWS
from elute.identify.effects.design import find_design
from elute.progress import Progress

_FIRST_BARRIER = 0.1
_FALL = 0.1
"""By which the barrier goes down after a step that was taken whole."""

_NEAR = 1.0
"""Standard errors within which the conditional maximum, a start for the other, is good enough."""

_WARM = 1e-7
"""Standard errors within which it no longer matters where a search began."""

_FARTHEST = 4.0
"""No log-propensity moves further in a step: beyond, the quadratic says nothing any more."""

_SHORTER, _LONGER = 0.1, 0.7
"""Shares of its length that a step which went too far may keep; between them, to where the slope would be 0."""

_SHORTEST = 1e-8
_ARMIJO = 1e-4
_ROUNDING = 1e-12
_LOOSE, _TIGHT = 1e-2, 1e-8
_CG_STEPS = 5_000
_COPIES = 3
"""Of all draws, that are held at a time: each, all in one, and their distances to a reference."""


@dataclass(frozen=True)
class FitByPartition:
    """A fit, by merged factor where not said otherwise."""

    partitions: Partitions
    fitted: FittedFactors
    precision: FactorInformation
    iterations: int
    reason: str
    tied: Flags
    row: Codes
    covariance: Floats
    """Of log o over factors with a `row`; or, where no matrix is kept, draws of it."""
    drawn: bool
    effects: EffectErrors | None
    items: int
    shown: Floats
    clicked: Floats

    def tabulate_effects(self) -> pa.Table | None:
        """The effects of a formula; None without one."""
        design = find_design(self.partitions.factors)
        if design is None or self.effects is None:
            return None
        return tabulate_effects(design, self.fitted.component, self.fitted.propensity, self.effects)

    @cached_property
    def sample(self) -> Cells:
        """Of some items."""
        return draw_sample(self.partitions, self.fitted, self.items)

    def find_population(self, log_se: Floats) -> Population:
        """The distribution of relevance over all items; `log_se` by merged factor."""
        fitted, totals = self.fitted, (self.shown, self.clicked)
        return fit_population(self.sample, fitted.propensity, log_se, fitted.component, totals)

    @property
    def log_variance(self) -> Floats:
        """Of log o to the component's largest."""
        if self.drawn:
            return np.where(self.tied, (self.covariance**2).mean(axis=1), np.nan)
        out = np.where(self.tied, 0.0, np.nan)
        out[self.row >= 0] = np.diagonal(self.covariance)
        return out

    def iterate_relevance(self, log_se: Floats) -> Iterator[pa.Table]:
        """The rows of `relevance_`, partition by partition; `log_se` by merged factor, with what clusters add."""
        population = self.find_population(log_se)
        work = DescriptionTask(self.fitted, self.tied, self.row, self.covariance, self.drawn, log_se, population)
        return self.partitions.stream_items(work, DESCRIPTION)


def median_clicks(items_by_clicks: NDArray[np.int64]) -> float:
    """The median of clicks an item; exact below (`CLICKS` - 1) / 2, and not below that where it is more."""
    upto = np.cumsum(items_by_clicks)
    middle = np.searchsorted(upto, [(upto[-1] - 1) // 2, upto[-1] // 2], side="right")
    return float(middle.mean())


def fit(
    partitions: Partitions,
    codes: Codes,
    wants_beta: Callable[[Outline], bool],
    start: Floats | None,
    tolerance: float,
    max_iter: int,
    warm: bool,
    progress: Progress,
    names: Callable[[NDArray[np.integer]], str],
) -> FitByPartition:
    """Fit factors merged by `codes`, from propensities `start`, or from all alike. `warm`: to where it no longer
    matters which."""
    n = int(codes.max()) + 1
    _refuse_draws(partitions, n)
    outline = partitions.map_reduce(OutlineTask(codes, n), Outline.merge)
    component, of_factor, design, space = tie_partitions(partitions, codes, outline)
    if design is not None and design.smooth.any():
        raise EluteError("smooth(…) in `bias=` needs all cells at once; leave out smooth, or `memory=`")
    beta, keep_matrix = wants_beta(outline), n <= partitions.dense_limit
    search = _Search(partitions, codes, of_factor, keep_matrix, max_iter, progress, space)
    first = np.zeros(n) if start is None else np.log(start)
    tolerance = min(tolerance, _WARM) if warm else tolerance
    if space is not None and start is not None:
        first = space.project(first)
    if beta:
        found = search.maximise(first, None, tolerance)
    else:
        first = search.maximise(first, None, _NEAR).log_o if start is None else first
        near = warm or not outline.bounds
        found = search.maximise(first, BARRIER if near else _FIRST_BARRIER, tolerance)
        if warm and found.reason:
            found = search.maximise(first, _FIRST_BARRIER, tolerance)
    o = np.where(of_factor == boundary.NOWHERE, 0.0, np.exp(found.log_o))
    apart = ~np.isin(of_factor, [boundary.NOWHERE, *boundary.find_main_parts(outline.clicked, component, of_factor)])
    reasons = [found.reason] if found.reason else []
    if apart.any():
        reasons.append(boundary.describe_apart(apart, names))
    linking = outline.linking if design is None else share_links(design, outline.linking)
    largest = find_scales(np.where(apart, 0.0, o), component, find_reliable(linking, component))
    fitted = FittedFactors(codes, of_factor, component, o, apart, largest, None)
    items = int(outline.items_by_clicks.sum())
    if beta:
        sample = draw_sample(partitions, fitted, items)
        prior = fit_beta(sample, fitted.bounded, np.arange(len(sample.offsets) - 1))
        fitted = replace(fitted, beta=prior)
    precision = partitions.map_reduce(FactorInformationTask(fitted, keep_matrix), FactorInformation.merge)
    return FitByPartition(
        partitions,
        fitted,
        precision,
        found.iterations,
        "; ".join(reasons),
        *estimate_precision(partitions, fitted, precision, design),
        items,
        outline.shown,
        outline.clicked,
    )


def _refuse_draws(partitions: Partitions, n: int) -> None:
    """Say what is needed, where the draws that standard errors come from take more than may be held."""
    needed = _COPIES * DRAWS * 8 * n
    if n > partitions.dense_limit and needed > partitions.memory:
        raise EluteError(
            f"`memory=`: standard errors of {n:,} factors come from draws that take {needed / 2**30:.1f}GB; allow "
            "three times as much, or fit fewer: fewer bias columns, `min_factor_impressions=`, or `elute.repair`"
        )


def draw_sample(partitions: Partitions, fitted: FittedFactors, items: int) -> Cells:
    """The cells of as many items as a prior is fitted to."""
    return partitions.map_reduce(SampleTask(fitted, items), join_cells)


class _Search:
    """Newton's method over rounds."""

    def __init__(
        self,
        partitions: Partitions,
        codes: Codes,
        of_factor: Codes,
        keep_matrix: bool,
        max_iter: int,
        progress: Progress,
        space: EffectSpace | None,
    ) -> None:
        self._partitions, self._codes, self._of_factor, self._keep_matrix = partitions, codes, of_factor, keep_matrix
        self._max_iter, self._progress, self._space = max_iter, progress, space

    def maximise(self, log_o: Floats, barrier: float | None, tolerance: float) -> Maximum:
        """From `log_o`; with the barrier falling from `barrier` to its last value, or of the conditional likelihood.
        `tolerance`: the distance to the maximum in standard errors at which to stop."""
        terms, share = self._compute_terms(log_o, barrier), _LOOSE
        for iteration in range(self._max_iter + 1):
            step, energy, _, solved = self._solve(terms, log_o, barrier, share)
            distance = energy**0.5
            if distance <= tolerance and solved and barrier in (None, BARRIER):
                return Maximum(log_o, iteration, "")
            if iteration == self._max_iter:
                break
            self._progress("fitting", iteration + 1, self._max_iter)
            length = min(1.0, _FARTHEST / max(float(np.abs(step).max()), _FARTHEST))
            least = terms.value - _ROUNDING * abs(terms.value)
            while not (
                (after := self._compute_terms(log_o + length * step, barrier)).value
                >= least + _ARMIJO * length * energy
            ):
                slope = float(after.gradient @ step)
                length *= min(max(energy / (energy - slope), _SHORTER), _LONGER) if slope < 0 else _SHORTER
                if length < _SHORTEST:
                    return Maximum(log_o, iteration, f"no step raises the likelihood, {describe_distance(distance)}")
            log_o, terms = log_o + length * step, after
            share = min(_LOOSE, max(energy, _TIGHT))
            if barrier is not None and barrier > BARRIER and length == 1.0:
                barrier = max(BARRIER, barrier * _FALL)
                terms = self._compute_terms(log_o, barrier)
        return Maximum(log_o, self._max_iter, f"stopped after {self._max_iter} steps, {describe_distance(distance)}")

    def _likelihood_at(self, log_o: Floats, barrier: float | None) -> LikelihoodTask:
        return LikelihoodTask(self._codes, self._of_factor, log_o, barrier, self._keep_matrix)

    def _compute_terms(self, log_o: Floats, barrier: float | None) -> Terms:
        return self._partitions.map_reduce(self._likelihood_at(log_o, barrier), Terms.merge)

    def _solve(self, terms: Terms, log_o: Floats, barrier: float | None, share: float) -> LinearSolution:
        def product(v: Floats) -> Floats:
            if self._keep_matrix:
                return np.asarray(terms.matrix @ v)
            return self._partitions.map_reduce(ProductTask(self._likelihood_at(log_o, barrier), v), np.add)

        tight = _TIGHT if self._keep_matrix else share
        if self._space is None:
            return conjugate_gradients(product, terms.gradient, terms.diagonal, tight, _CG_STEPS)
        x = self._space.x
        scale = x.power(2).T @ terms.diagonal
        found = conjugate_gradients(lambda v: x.T @ product(x @ v), x.T @ terms.gradient, scale, tight, _CG_STEPS)
        return found._replace(x=x @ found.x)

"""How much of a log is known: propensities to the precision asked, places of items, order within queries.

Structure says which ratios *can* be learnt (Theorem 1, of click probabilities). A log has click counts, and on a sparse
one these part ways. So the position-based model is fitted, errors are taken from its information and from how much the
clicks of a cluster depend on each other (`dependence`), and what follows for items and queries from their posteriors
(`pairs`). Large logs are sampled (`sample`); what that costs is said in `notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Clustered
from elute.estimate.models.pbm import PBM
from elute.estimate.partitioned.items import select_items
from elute.estimate.priors.gamma import CellInformation, Population, fit_population, weigh_cells
from elute.estimate.solve import boundary
from elute.estimate.solve.laplacian import diagonal
from elute.estimate.solve.problem import Floats, find_scales
from elute.identify.information import find_references
from elute.known.covariance import Covariance, measure_covariance
from elute.known.dependence import Dependence, find_effects, score_impressions, score_items, sum_squares
from elute.known.sample import Sample
from elute.known.shares import Shares, measure_order
from elute.progress import Progress, silent

TARGET = 0.1
"""Standard error of a log propensity that counts as known: within 10%, or 20% with 95% confidence. A ranker that
weighs clicks by 1/propensity is then off by as much."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Precision:
    """By factor of the problem (merged by a plan): `propensity` and `log_se`, which is that of independent clicks times
    the root of the design effect. `apart`: factors that no chain of clicks ties to the rest of their component;
    `unclicked`: factors without a click."""

    sample: Sample
    target: float
    propensity: Floats
    plain_se: Floats
    log_se: Floats
    reference: NDArray[np.int64]
    apart: Flags
    unclicked: Flags
    dependence: Dependence | None
    population: Population
    shares: Shares
    notes: tuple[str, ...]

    @property
    def estimable(self) -> bool:
        """Whether the maximum exists: all clicked factors are tied by clicks."""
        return not self.unestimable.any()

    @property
    def unestimable(self) -> Flags:
        """Factors whose ratio to others nothing determines. One that was shown and never clicked is not among them,
        unless all are: its propensity is estimated as 0, and not known."""
        return np.asarray(self.apart | self.unclicked.all())

    @property
    def is_reference(self) -> Flags:
        return np.asarray(self.reference == np.arange(len(self.reference)))

    @property
    def known(self) -> Flags:
        """Factors whose propensity is known to the target. What others are measured by is known if one of these is; a
        factor alone in its component has nothing to be compared with."""
        out = np.nan_to_num(self.log_se, nan=np.inf) <= self.target
        measured = np.zeros(len(out), np.bool_)
        measured[self.reference[out & ~self.is_reference]] = True
        return np.asarray(np.where(self.is_reference, measured, out) & ~self.unclicked)

    @property
    def errors(self) -> Floats:
        """Standard errors of all factors that others are not measured by; infinite where there is no estimate."""
        return np.nan_to_num(self.log_se[~self.is_reference], nan=np.inf)

    @property
    def largest_log_se(self) -> float | None:
        return _finite_or_none(self.errors.max()) if len(self.errors) else None

    @property
    def median_log_se(self) -> float | None:
        return _finite_or_none(float(np.median(self.errors))) if len(self.errors) else None

    @property
    def clicks_needed(self) -> int | None:
        """More clicks until every factor is known, where each needs them: errors fall with their root. A factor without
        one needs as many as make the target alone. None where no number of clicks would do."""
        if not self.estimable:
            return None
        wanting = ~self.known & ~self.unclicked & ~self.is_reference
        times = (np.nan_to_num(self.log_se[wanting], nan=np.inf) / self.target) ** 2
        clicked = np.maximum(self.sample.clicked[wanting], 0.5)  # of effects alone, one may be known without a click
        further = float(clicked @ (times - 1.0))
        unseen = int(self.unclicked.sum()) * self.design_effect / self.target**2
        return int(np.ceil(further + unseen)) if np.isfinite(further) else None

    @property
    def design_effect(self) -> float:
        return 1.0 if self.dependence is None else self.dependence.typical

    @property
    def impressions_known_share(self) -> float:
        return float(self.sample.shown[self.known].sum() / self.sample.shown.sum())

    def to_dict(self) -> dict[str, Any]:
        """The field `precision` of `elute check --json`, less what a structure must add."""
        shares, found = self.shares, self.dependence
        return {
            "target_log_se": self.target,
            "factors_known": int(np.count_nonzero(self.known[self.sample.problem.merged])),
            "impressions_known_share": self.impressions_known_share,
            "items_known_share": shares.items_known,
            "queries_ordered_share": None if shares.queries_ordered is None else shorten(shares.queries_ordered),
            "pairs_right_share": None if shares.pairs_right is None else shorten(shares.pairs_right),
            "clicks_needed": self.clicks_needed,
            "largest_log_se": self.largest_log_se,
            "median_log_se": self.median_log_se,
            "design_effect": shorten(self.design_effect),
            "clusters": None if found is None else {"by": found.by, "number": found.clusters, "tell": found.tells},
            "items_sampled": shares.items_sampled,
            "queries_sampled": shares.queries_sampled,
            "notes": list(self.notes),
        }


def _finite_or_none(value: float) -> float | None:
    return shorten(value) if np.isfinite(value) else None


def shorten(value: float) -> float:
    """Six digits, of which fewer are known: the order in which cells were counted does not show."""
    return float(f"{value:.6g}")


def measure(
    sample: Sample,
    target: float = TARGET,
    *,
    query: str | None = None,
    clusters: Sequence[tuple[str, Callable[[], Clustered]]] = (),
    notes: Sequence[str] = (),
    progress: Progress = silent,
) -> Precision:
    """Measure a log. `query`: the name of what `sample.query` holds. `clusters`: columns of other clusters, such as
    sessions, and what reads the cells by each. `notes`: what is to be said of all this."""
    progress("measuring what is known", 0, 0)
    problem, n = sample.problem, sample.problem.n_factors
    unclicked = np.asarray(sample.part == boundary.NOWHERE)
    if unclicked.all():
        return _know_nothing(sample, target)
    main = boundary.find_main_parts(sample.clicked, problem.component, sample.part)
    apart = ~np.isin(sample.part, [boundary.NOWHERE, *main])
    fitted = PBM(relevance_prior="beta", progress=progress).fit_factors(problem)
    o = np.where(apart | unclicked | fitted.apart, 0.0, fitted.o)
    o = o / find_scales(o, problem.component, problem.reliable)[problem.component]
    totals = sample.shown, sample.clicked
    info = weigh_cells(problem.cells, o, fit_population(problem.cells, o, np.zeros(n), problem.component, totals))
    weighted = info.expected * sample.weight.repeat(np.diff(problem.cells.offsets))
    covariance = measure_covariance(problem.design, problem.cells, weighted, o, problem.component)
    found = _find_dependence(sample, o, info, covariance, query, clusters)
    plain = np.sqrt(covariance.variance)
    log_se = plain if found is None else plain * np.sqrt(found.effect)
    fair = select_items(problem.cells, np.flatnonzero(sample.fair))
    error = log_se * np.sqrt(weighted.sum() / max(float(info.expected.sum()), np.finfo(float).tiny))
    population = fit_population(fair, o, error, problem.component, totals)
    shares = measure_order(sample, np.where(apart, np.nan, o), error, population)
    said = *notes, *_describe_approximations(sample, covariance, int((fitted.apart & ~apart).sum()))
    return Precision(
        sample,
        target,
        o,
        plain,
        log_se,
        covariance.reference,
        apart,
        unclicked,
        found,
        population,
        shares,
        said,
    )


def measure_placed(sample: Sample, o: Floats, log_se: Floats, target: float = TARGET) -> Precision:
    """Where propensities of all factors come from elsewhere, on one scale, with errors relative to one of them."""
    problem = replace(sample.problem, component=np.zeros_like(sample.problem.component))
    sample = replace(sample, problem=problem)
    unclicked = np.asarray(o == 0)
    if unclicked.all():
        return _know_nothing(sample, target)
    reference = np.full(len(o), int(np.flatnonzero(log_se == 0)[0]))
    fair = select_items(problem.cells, np.flatnonzero(sample.fair))
    error = np.nan_to_num(log_se)
    population = fit_population(fair, o, error, problem.component, (sample.shown, sample.clicked))
    shares = measure_order(sample, o, error, population)
    apart = np.zeros(len(o), np.bool_)
    return Precision(sample, target, o, log_se, log_se, reference, apart, unclicked, None, population, shares, ())


def _know_nothing(sample: Sample, target: float) -> Precision:
    """Of a log without a click."""
    n = sample.problem.n_factors
    nothing, none, all_of = np.full(n, np.nan), np.zeros(n, np.bool_), np.ones(n, np.bool_)
    shares = Shares(0.0, sample.problem.n_items, None if sample.members is None else 0.0, None, 0)
    population = Population(1.0, np.ones(n), 1.0)
    alone = find_references(np.zeros(n), sample.problem.component)
    return Precision(sample, target, np.zeros(n), nothing, nothing, alone, none, all_of, None, population, shares, ())


def _find_dependence(
    sample: Sample,
    o: Floats,
    info: CellInformation,
    covariance: Covariance,
    query: str | None,
    clusters: Sequence[tuple[str, Callable[[], Clustered]]],
) -> Dependence | None:
    """By query and by the clusters that are given, whichever matters more to a factor; None where there is neither."""
    problem, found = sample.problem, []
    if (query is None or sample.query is None) and not clusters:
        return None
    poisson = covariance
    if covariance.held:
        poisson = measure_covariance(problem.design, problem.cells, info.given, o, problem.component)
    if query is not None and sample.query is not None:
        scores = score_items(problem.cells, o, sample.query)
        found.append(find_effects(query, scores, poisson, _find_baseline(sample, info.given, poisson), info.boost))
    for by, read in clusters:
        rows = read()
        rows = rows._replace(factor=problem.merged[rows.factor])
        scores = score_impressions(problem.cells, o, rows, sample.position)
        alone = rows._replace(cluster=np.arange(len(rows.item)))
        baseline = sum_squares(score_impressions(problem.cells, o, alone, sample.position), poisson)[0]
        found.append(find_effects(by, scores, poisson, baseline, 1.0))
    if not found:
        return None
    most = max(found, key=lambda one: (one.typical, one.tells))
    return most._replace(effect=np.max([one.effect for one in found], axis=0))


def _find_baseline(sample: Sample, w: Floats, poisson: Covariance) -> Floats:
    """By factor: the squares that independent clicks give. With V at hand, V·L·V = V."""
    if poisson.held:
        return poisson.variance
    return diagonal(*sample.problem.cells[:2], w, sample.problem.n_factors)


def _describe_approximations(sample: Sample, covariance: Covariance, untied: int) -> tuple[str, ...]:
    """What was not computed from everything, and how far off that may be."""
    notes = []
    if sample.members is None and not len(sample.position):
        notes.append("queries were not looked at, nor clusters: the cells are not held in memory")
    if sample.share < 1:
        notes.append(
            f"measured on {sample.problem.n_items:,} of {sample.items:,} items; sums over all are estimated from them"
        )
    if covariance.relative_error:
        notes.append(f"standard errors are drawn, and off by about {covariance.relative_error:.0%} of themselves")
    if untied:
        notes.append(f"the sample does not tie {untied:,} factors to the rest: they count as not known")
    return tuple(notes)

"""What a log says of the links of a swap plan: every ratio log o(s) - log o(t), and its variance.

The position-based model is fitted to all clicks, given how many each item has (`elute.estimate.solve.conditional`). The
variance of a link is its effective resistance: with u = L⁺·(e_s - e_t), v = u(s) - u(t), through the planned item and
through whatever else ties the two. It is multiplied by the link's design effect (`effects`).

A ratio is finite only where a chain of clicks ties its two factors both ways (`elute.estimate.solve.boundary`); until
then its variance is infinite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.gamma import CellInformation, fit_population, weigh_cells
from elute.estimate.solve import boundary
from elute.estimate.solve.effect_boundary import find_effect_parts
from elute.estimate.solve.laplacian import conjugate_gradients, diagonal, multiply
from elute.estimate.solve.problem import Codes, Floats, find_scales
from elute.identify.effects.design import EffectDesign
from elute.known.covariance import Covariance, measure_covariance
from elute.known.sample import Sample, sample_counts
from elute.progress import Progress, silent
from elute.repair.looks.effects import Clusters, measure_queries, measure_spread, steady

Ints = NDArray[np.int64]

_SHARE, _STEPS = 1e-8, 20_000


class MeasuredLinks(NamedTuple):
    """By link: the ratio (NaN where there is none), its variance with clusters (infinite where there is none), whether
    clicks tie its ends, and the design effect in it. `clusters`: the columns that make them."""

    log_ratio: Floats
    variance: Floats
    tied: NDArray[np.bool_]
    effect: Floats
    clusters: tuple[str, ...]


class _Fitted(NamedTuple):
    """Cells within parts, propensities (0 where nothing was clicked), and the part of every factor as its component."""

    cells: Cells
    o: Floats
    part: Codes
    info: CellInformation
    covariance: Covariance
    design: EffectDesign | None


def measure_links(
    counts: Counts,
    source: Ints,
    target: Ints,
    planned: Ints,
    *,
    query: str | None = None,
    clusters: Clusters = (),
    progress: Progress = silent,
) -> MeasuredLinks:
    """Of the links from `source` to `target`. `planned`: the items that the plan shows elsewhere. `query`: the column
    of the queries that items belong to by name, if they do; `clusters`: others."""
    m = len(source)
    sample = sample_counts(counts, None, cells=max(counts.n_cells, 1))
    if not sample.clicked.any():
        nothing = np.full(m, np.nan), np.full(m, np.inf), np.zeros(m, np.bool_), np.ones(m)
        return MeasuredLinks(*nothing, ())
    fitted = _fit(sample, progress)
    tied = (fitted.part[source] == fitted.part[target]) & (fitted.o[source] > 0) & (fitted.o[target] > 0)
    variance = np.full(m, np.inf)
    for link in np.flatnonzero(tied):
        s, t = int(source[link]), int(target[link])
        u = _solve(fitted.cells, fitted.info.expected, fitted.covariance, s, t)
        variance[link] = u[s] - u[t]
    tied = np.isfinite(variance)
    effect, by = np.ones(m), []
    if query is not None and sample.query is not None:
        effect *= measure_queries(fitted.cells, fitted.o, fitted.info.given, sample.query, planned, fitted.design)
        by.append(query)
    if clusters and tied.any():
        found = _measure_clusters(fitted, source[tied], target[tied], clusters)
        effect[tied] = np.maximum(effect[tied], found)
        effect[~tied] = np.maximum(effect[~tied], np.median(found))
        by += [name for name, _ in clusters]
    ratio = np.full(m, np.nan)
    ratio[tied] = np.log(fitted.o[source[tied]]) - np.log(fitted.o[target[tied]])
    return MeasuredLinks(ratio, variance * effect, tied, effect, tuple(by))


def _fit(sample: Sample, progress: Progress) -> _Fitted:
    """Parts count as components: each has a scale of its own."""
    problem = sample.problem
    found, design = PBM(relevance_prior="beta", progress=progress).fit_factors(problem), problem.design
    if design is None:
        of_item = boundary.find_parts(problem.cells, problem.n_factors, problem.component)[1]
    else:
        of_item = find_effect_parts(problem.cells, design)[1]
    cells = boundary.restrict(problem.cells, sample.part, of_item)
    part = np.unique(sample.part, return_inverse=True)[1].astype(np.int32)
    o = np.where(sample.part == boundary.NOWHERE, 0.0, found.o)
    o = o / find_scales(o, part, problem.reliable)[part]
    info = weigh_cells(cells, o, fit_population(cells, o, np.zeros(len(o)), part))
    return _Fitted(cells, o, part, info, measure_covariance(design, cells, info.expected, o, part), design)


def _measure_clusters(fitted: _Fitted, source: Ints, target: Ints, clusters: Clusters) -> Floats:
    """The design effect of every link, by the clusters that matter most to it."""
    cells, o, w = fitted.cells, fitted.o, fitted.info.given
    poisson = measure_covariance(fitted.design, cells, w, o, fitted.part)
    columns = [_solve(cells, w, poisson, s, t) for s, t in zip(source.tolist(), target.tolist(), strict=True)]
    effect = np.ones(len(source))
    for _, read in clusters:
        rows = read()
        spreads = [measure_spread(cells, o, w, column, rows) for column in columns]
        effect = np.maximum(effect, steady(spreads, int(rows.cluster.max(initial=-1)) + 1))
    return effect


def _solve(cells: Cells, w: Floats, covariance: Covariance, source: int, target: int) -> Floats:
    """u of a link, but for a constant within each part; infinite where nothing ties its ends."""
    n, rows = len(covariance.row), covariance.design
    apart = np.zeros(n)
    apart[source], apart[target] = 1.0, -1.0
    if not np.isfinite(covariance.variance[[source, target]]).all():
        return np.where(apart > 0, np.inf, 0.0)
    if covariance.held:
        return covariance.multiply(apart)
    scale = diagonal(*cells[:2], w, n)
    if rows is None:
        return conjugate_gradients(lambda v: multiply(*cells[:2], w, v), apart, scale, _SHARE, _STEPS).x

    def multiply_tied(v: Floats) -> Floats:
        return np.asarray(rows.T @ multiply(*cells[:2], w, rows @ v))

    found = conjugate_gradients(multiply_tied, rows.T @ apart, rows.power(2).T @ scale, _SHARE, _STEPS)
    return np.asarray(rows @ found.x)

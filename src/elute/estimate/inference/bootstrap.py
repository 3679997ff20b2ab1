"""Standard errors without the assumption that impressions are independent: the clustered bootstrap.

The information matrix takes every impression for a draw of its own. Those of one query, or one session, are
not: users of a query share habits that the model does not know. So whole clusters are drawn, as many as there
are, with replacement; the model is refitted to what they hold, from the full fit on and with its priors held;
and the spread of the refits is the standard error.

There are two kinds of clusters. Where each item lies in one (queries, as an item is a query's by default), a
draw gives every item an integer weight. It cannot say how noisy the item's own clicks are, as an item is drawn
with all its clicks or not at all: so the bootstrap tells what propensities contribute to the error of a
relevance, every item being refitted to all its clicks in every replicate, and the variance that the item's
clicks have by themselves is added. (What a query's habits do to its own items' clicks no draw of queries shows:
they are part of what is estimated.) Other clusters (sessions) need cells of their own (`Clustered`); their draws
renew the items' clicks too, and an item may be absent from some.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute._util.threads import count_threads, map_threads
from elute.cells.counts import Clustered, Counts
from elute.errors import EluteError
from elute.estimate.inference.replicate import Replicate, refit
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import Codes, Floats, MergingPlan, Problem, pose
from elute.identify.information import find_references
from elute.kernels.jit import jit
from elute.log import LogSource, as_log
from elute.progress import Progress, silent

FEWEST = 2
"""Clusters, and replicates, below which there is no spread."""

_CELLS_AT_ONCE = 8_000_000
"""Of replicates that are fitted side by side: beyond, a fit keeps all cores busy by itself."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The spread of log(propensity / that of the full fit's reference) by factor of the log, and of log relevance
    at that scale by item. A replicate counts for a factor or item only where its clicks tie it to the reference
    and are not none: `factor_replicates` and `item_replicates` say how many did. NaN where fewer than two; a
    reference has 0. `propensity_low` and `propensity_high` hold the middle 95% of replicates.

    `disconnected`: replicates with more components than the log; a factor not shown is one by itself. `failed`:
    those whose fit did not converge, or left factors without a finite ratio to the rest.
    """

    propensity_log_se: Floats
    propensity_low: Floats
    propensity_high: Floats
    factor_replicates: NDArray[np.int64]
    relevance_log_se: Floats
    item_replicates: NDArray[np.int64]
    replicates: int
    clusters: int
    disconnected: int
    failed: int

    @property
    def sentence(self) -> str:
        """What was drawn, and how the draws went."""
        return (
            f"{self.replicates:,} draws of {self.clusters:,} clusters; {self.disconnected:,} fell into more components "
            f"than the log, {self.failed:,} could not be fitted in full"
        )

    def to_dict(self) -> dict[str, int]:
        """The field `bootstrap` of `elute fit --json`."""
        return {name: getattr(self, name) for name in ("replicates", "clusters", "disconnected", "failed")}

    def __repr__(self) -> str:
        return f"Bootstrap({self.sentence})"


def bootstrap(
    model: PBM,
    source: LogSource,
    cluster: NDArray[np.integer] | Clustered | None = None,
    *,
    plan: MergingPlan | None = None,
    replicates: int = 200,
    seed: int = 0,
    allow_unidentified: bool = False,
    progress: Progress = silent,
) -> Bootstrap:
    """Fit `model` to the log, then to draws of its clusters.

    `cluster`: the cluster of every item (codes from 0), or cells by cluster; None: the item's query.
    """
    if replicates < FEWEST:
        raise EluteError(f"a standard error needs at least {FEWEST} replicates, not {replicates}; 200 is usual")
    counts = source if isinstance(source, Counts) else as_log(source).counts(progress)
    problem = pose(counts, plan)
    clustered = cluster if isinstance(cluster, Clustered) else None
    if clustered is not None:
        codes, cell = np.asarray(clustered.cluster), _locate_cells(counts, problem, clustered)
    else:
        codes = queries_of_items(counts) if cluster is None else np.asarray(cluster)
        cell = np.empty(0, np.int64)
        if codes.shape != (counts.n_items,):
            raise EluteError(
                f"`cluster=` has {codes.size:,} entries for {counts.n_items:,} items; give one for each item"
            )
    clusters = int(codes.max(initial=-1)) + 1
    if clusters < FEWEST or codes.min() < 0:
        raise EluteError("the bootstrap draws from two clusters or more, coded 0, 1, 2, …; choose a finer column")
    model.fit(counts, plan, allow_unidentified=allow_unidentified)
    full_o = model.propensity_[np.unique(problem.merged, return_index=True)[1]]
    reference = find_references(full_o, problem.component)
    rng = np.random.default_rng(seed)
    log_o, of_items = np.full((replicates, problem.n_factors), np.nan), Moments(problem.n_items)
    disconnected = failed = 0
    at_once = max(1, min(count_threads(), _CELLS_AT_ONCE // max(len(problem.cells.factor), 1)))

    def refit_to(weight: NDArray[np.int64]) -> Replicate:
        if clustered is None:
            times = weight.repeat(np.diff(problem.cells.offsets)).astype(np.uint64)
            return refit(model, problem, problem.cells.impressions * times, problem.cells.clicks * times, reference)
        n = len(problem.cells.factor)
        impressions, clicks = (_sum_amounts(cell, weight, amounts, n) for amounts in clustered[3:5])
        return refit(model, problem, impressions, clicks, reference, renewed=True)

    for begin in range(0, replicates, at_once):
        progress("bootstrap", begin + 1, replicates)
        draws = [rng.integers(clusters, size=clusters) for _ in range(begin, min(begin + at_once, replicates))]
        weights = [np.bincount(draw, minlength=clusters)[codes] for draw in draws]
        for number, found in enumerate(map_threads(refit_to, weights), begin):
            log_o[number] = found.log_o
            of_items.add(found.items, found.log_r)
            disconnected += found.disconnected
            failed += found.failed
    variance = of_items.variance()
    if clustered is None:
        variance += model.item_log_variance(problem, full_o, model.relevance_values_)
    spread, low, high = measure_spread(log_o)
    return Bootstrap(
        spread[problem.merged],
        low[problem.merged],
        high[problem.merged],
        np.isfinite(log_o).sum(axis=0)[problem.merged],
        np.sqrt(variance),
        of_items.count,
        replicates,
        clusters,
        disconnected,
        failed,
    )


def queries_of_items(counts: Counts) -> Codes:
    """The query of every item, where each has one."""
    if counts.membership is None:
        raise EluteError("the log has no query column to draw by; give the cluster of every item as `cluster=`")
    query, item = counts.membership.query, counts.membership.item
    if len(item) != counts.n_items:
        raise EluteError(
            "some items were shown for several queries; give cells by cluster, or make the query part of the item"
        )
    out = np.empty(counts.n_items, np.int32)
    out[item] = query
    return out


class Moments:
    """Running count, mean and variance of every item (Welford): replicates of many items are not kept."""

    def __init__(self, n: int) -> None:
        self.count = np.zeros(n, np.int64)
        self._mean, self._squares = np.zeros(n), np.zeros(n)

    def add(self, items: NDArray[np.int64], values: Floats) -> None:
        self.count[items] += 1
        ahead = values - self._mean[items]
        self._mean[items] += ahead / self.count[items]
        self._squares[items] += ahead * (values - self._mean[items])

    def variance(self) -> Floats:
        enough = self.count >= FEWEST
        return np.where(enough, self._squares / np.maximum(self.count - 1, 1), np.nan)


def _locate_cells(counts: Counts, problem: Problem, clustered: Clustered) -> NDArray[np.int64]:
    """The cell of `problem` that each of some cells by cluster belongs to."""
    if len({len(column) for column in clustered[:5]}) != 1:
        raise EluteError("cells by cluster need five columns of the same length; give one entry of each for every cell")
    item, factor = np.asarray(clustered.item, np.int64), np.asarray(clustered.factor, np.int64)
    if item.min() < 0 or item.max() >= counts.n_items or factor.min() < 0 or factor.max() >= counts.n_factors:
        raise EluteError(
            "cells by cluster name items or factors that the counts do not have; use the codes of the counts"
        )
    cells = problem.cells
    known = np.arange(problem.n_items).repeat(np.diff(cells.offsets)) * problem.n_factors + cells.factor
    wanted = item * problem.n_factors + problem.merged[factor]
    cell = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    totals = [_sum_amounts(cell, np.ones(len(cell), np.int64), part, len(known)) for part in clustered[3:5]]
    if (known[cell] != wanted).any() or any((a != b).any() for a, b in zip(totals, cells[2:], strict=True)):
        raise EluteError("cells by cluster do not add up to the counts; make both from the same rows")
    return np.asarray(cell, np.int64)


def _sum_amounts(
    cell: NDArray[np.int64], weight: NDArray[np.int64], amounts: NDArray[np.integer], n: int
) -> NDArray[np.uint64]:
    return _sum_weighted(cell, weight, np.asarray(amounts, np.int64), n).astype(np.uint64)


@jit
def _sum_weighted(
    cell: NDArray[np.int64], weight: NDArray[np.int64], amounts: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    out = np.zeros(n, np.int64)
    for i in range(cell.shape[0]):
        out[cell[i]] += weight[i] * amounts[i]
    return out


def measure_spread(log_o: Floats) -> tuple[Floats, Floats, Floats]:
    """Standard deviation of every column, and the middle 95% of its exponential, over what is known of it."""
    out = np.full((3, log_o.shape[1]), np.nan)
    for column in np.flatnonzero(np.isfinite(log_o).sum(axis=0) >= FEWEST):
        known = log_o[np.isfinite(log_o[:, column]), column]
        out[0, column] = known.std(ddof=1)
        out[1:, column] = np.exp(np.percentile(known, [2.5, 97.5]))
    return out[0], out[1], out[2]

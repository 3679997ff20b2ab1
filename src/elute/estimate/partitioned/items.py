"""What a fit asks of one partition once the propensities are known: relevance of its items, and how sure both are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.offsets import take_groups
from elute.cells.counts import Cells, sum_by_item
from elute.cells.partitions import ItemColumns, Partition
from elute.estimate.partitioned.work import Flags, pose_partition
from elute.estimate.priors.beta import SAMPLE, Beta, Posterior, posterior
from elute.estimate.priors.gamma import Population, know_items
from elute.estimate.solve import boundary, conditional
from elute.estimate.solve.interior import BARRIER
from elute.estimate.solve.laplacian import diagonal, grounded_laplacian, multiply
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.profile import fit_items
from elute.estimate.solve.standard_errors import (
    find_informed_factor,
    information,
    item_means,
    item_variances,
    link_informed,
    masses,
    project,
)  # fmt: skip
from elute.kernels.equal_items import group_equal_items
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.unionfind import find_roots, singletons

DESCRIPTION = pa.schema(
    {
        "component": pa.int32(),
        "relevance": pa.float64(),
        "log_se": pa.float64(),
        "impressions": pa.int64(),
        "clicks": pa.int64(),
        "shape": pa.float64(),
        "rate": pa.float64(),
        "evidence": pa.float64(),
    }
)
"""What is said of an item."""


class Items(NamedTuple):
    """A partition's items: cells, those within parts, relevance at the scale of `Fitted.o`, and items without a finite
    one."""

    cells: Cells
    within: Cells
    r: Floats
    lost: Flags
    log_variance: Floats | None
    """Of an item's log relevance given the propensities, where there is a prior."""


@dataclass(frozen=True)
class FittedFactors:
    """The propensities that were found, and all else that an item's relevance depends on. `apart`: factors without a
    finite ratio to their component; `largest`: by component; `beta`: the prior on relevance, if any."""

    codes: Codes
    of_factor: Codes
    component: Codes
    o: Floats
    apart: Flags
    largest: Floats
    beta: Beta | None

    @property
    def propensity(self) -> Floats:
        """As reported: the largest of a component is 1, NaN for factors apart."""
        return np.where(self.apart, np.nan, self.o / self.largest[self.component])

    @property
    def bounded(self) -> Floats:
        """As the prior on relevance takes them: at most 1."""
        return np.minimum(np.nan_to_num(self.propensity), 1.0)

    def fit_items(self, partition: Partition) -> Items:
        cells = pose_partition(partition, self.codes)
        first = boundary.group_by_clicks(cells, len(self.o)).first
        of_item = boundary.assign_items(first, self.of_factor)
        within = boundary.restrict(cells, self.of_factor, of_item)
        lost = (first >= 0) & self.apart[first]
        if self.beta is None:
            return Items(cells, within, fit_items(*within, self.o, BARRIER), lost, None)
        some, code = group_equal_items(*cells, np.arange(len(first)))
        own = Posterior(*(part[code] for part in posterior(cells, self.bounded, self.beta, some)))
        r = own.mean / self._find_largest(cells)
        if lost.any():
            r = np.where(lost, fit_items(*within, self.o, BARRIER), r)
        return Items(cells, within, r, lost, np.where(lost, np.nan, own.log_variance))

    def report_relevance(self, found: Items) -> Floats:
        """As reported."""
        return np.where(found.lost, np.nan, found.r * self._find_largest(found.cells))

    def own_information(self, found: Items) -> Floats:
        """Of every cell, about its item: as in `PBM`'s standard errors."""
        return np.asarray(information(*found.cells[:3], self.report_relevance(found), self.propensity))

    def information(self, partition: Partition) -> tuple[Cells, Floats]:
        """The cells, and what each says about propensities: as in `PBM`'s standard errors."""
        if self.beta is None:
            found = self.fit_items(partition)
            return found.cells, self.own_information(found)
        cells, o = pose_partition(partition, self.codes), np.nan_to_num(self.propensity)
        first = boundary.group_by_clicks(cells, len(o)).first
        r = np.where((first >= 0) & self.apart[first], 0.0, conditional.estimate_items(*cells, o))
        return cells, conditional.expect_clicks(*cells[:3], r, o)

    def item_component(self, cells: Cells) -> Codes:
        return self.component[cells.factor[cells.offsets[:-1]]]

    def _find_largest(self, cells: Cells) -> Floats:
        return np.asarray(self.largest[self.item_component(cells)])


@dataclass(frozen=True)
class SampleTask:
    """Partition to the cells of some of its items: evenly spaced, `SAMPLE` of all `n_items`."""

    fitted: FittedFactors
    n_items: int

    def __call__(self, partition: Partition) -> Cells:
        cells = pose_partition(partition, self.fitted.codes)
        first = boundary.group_by_clicks(cells, len(self.fitted.o)).first
        usable = np.flatnonzero((first < 0) | ~self.fitted.apart[first])
        wanted = min(len(usable), math.ceil(SAMPLE * len(first) / max(self.n_items, SAMPLE)))
        return select_items(cells, usable[np.unique(np.linspace(0, len(usable) - 1, wanted).astype(np.int64))])


def select_items(cells: Cells, items: NDArray[np.int64]) -> Cells:
    """The cells of some items."""
    at, offsets = take_groups(cells.offsets, items)
    return Cells(offsets, cells.factor[at], cells.impressions[at], cells.clicks[at])


def join_cells(one: Cells, other: Cells) -> Cells:
    """The cells of both."""
    offsets = np.concatenate((one.offsets, one.offsets[-1] + other.offsets[1:]))
    both: list[NDArray[Any]] = [np.concatenate(pair) for pair in zip(one[1:], other[1:], strict=True)]
    return Cells(offsets, *both)


class FactorInformation(NamedTuple):
    """How much is known: the log-likelihood; the forest of factors that share information; the diagonal of the
    information about propensities and, where a matrix is kept, all of it."""

    log_likelihood: float
    root: Codes
    diagonal: Floats
    matrix: Floats

    def merge(self, other: FactorInformation) -> FactorInformation:
        sums = (a + b for a, b in zip(self[2:], other[2:], strict=True))
        return FactorInformation(self[0] + other[0], merge_edges(self.root, spanning_edges(other.root)), *sums)


@dataclass(frozen=True)
class FactorInformationTask:
    """Partition to `FactorInformation`."""

    fitted: FittedFactors
    keep_matrix: bool

    def __call__(self, partition: Partition) -> FactorInformation:
        found, (cells, w) = self.fitted.fit_items(partition), self.fitted.information(partition)
        n, (offsets, factor) = len(self.fitted.o), cells[:2]
        parent = singletons(n)
        link_informed(offsets, factor, w, parent)
        value = log_likelihood(*found.within, found.r, self.fitted.o)
        everyone = np.arange(n, dtype=np.int32)
        matrix = grounded_laplacian(offsets, factor, w, everyone, n) if self.keep_matrix else np.empty((0, 0))
        return FactorInformation(value, find_roots(parent), diagonal(offsets, factor, w, n), matrix)


@dataclass(frozen=True)
class NoiseTask:
    """Partition to its part of `draws` random vectors whose covariance is the information L, by column."""

    fitted: FittedFactors
    draws: int
    seed: int

    def __call__(self, partition: Partition) -> Floats:
        cells, w = self.fitted.information(partition)
        rng, n = np.random.default_rng([self.seed, partition.number]), len(self.fitted.o)
        columns = [project(*cells[:2], w, rng.standard_normal(len(w)), n) for _ in range(self.draws)]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class InformationTask:
    """Partition to its part of L·v for every column of `v`, with L the information."""

    fitted: FittedFactors
    v: Floats

    def __call__(self, partition: Partition) -> Floats:
        cells, w = self.fitted.information(partition)
        return np.stack([multiply(*cells[:2], w, np.ascontiguousarray(v)) for v in self.v.T], axis=1)


@dataclass(frozen=True)
class DescriptionTask:
    """Partition to the columns of `DESCRIPTION`. `tied`: factors whose ratio to their component's reference is known;
    `covariance` of log o over the factors that have a `row`, or draws with that covariance, one a column; `log_se`: by
    factor, with what clusters add."""

    fitted: FittedFactors
    tied: Flags
    row: Codes
    covariance: Floats
    drawn: bool
    log_se: Floats
    population: Population

    def __call__(self, partition: Partition) -> ItemColumns:
        found = self.fitted.fit_items(partition)
        cells, relevance = found.cells, self.fitted.report_relevance(found)
        own = self.fitted.own_information(found)
        where = find_informed_factor(*cells[:2], own)
        known = (where >= 0) & self.tied[where]
        mass = np.where(known, masses(cells.offsets, own), np.nan)
        if self.drawn:
            means = (item_means(*cells[:2], own, np.ascontiguousarray(u)) for u in self.covariance.T)
            through = np.asarray(sum(mean**2 for mean in means)) / self.covariance.shape[1]
        else:
            through = item_variances(*cells[:2], own, self.row, self.covariance)
        through = np.where(known, through, np.nan)
        alone = found.log_variance
        variance = 1.0 / mass + through if alone is None else alone + np.minimum(mass * alone, 1.0) ** 2 * through
        return {
            "component": self.fitted.item_component(cells),
            "relevance": relevance,
            "log_se": np.sqrt(variance),
            "impressions": sum_by_item(cells.offsets, cells.impressions),
            "clicks": sum_by_item(cells.offsets, cells.clicks),
            **know_items(cells, self.fitted.propensity, self.log_se, self.population)._asdict(),
        }

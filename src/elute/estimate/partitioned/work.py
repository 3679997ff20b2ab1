"""What a fit asks of one partition of the cells. Everything here is picklable and needs no more than its own fields and
the partition, so that it may run wherever the partition lies; results are as long as the factors (or their square)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.cells.partitions import Partition
from elute.estimate.solve import boundary, conditional
from elute.estimate.solve.laplacian import grounded_laplacian, multiply
from elute.estimate.solve.problem import Codes, Floats, total_by_factor, total_by_item, total_linking_clicks
from elute.estimate.solve.profile import BELOW_ONE, fit_items, scale_barrier
from elute.kernels.forest import connect_cells, merge_edges, spanning_edges
from elute.kernels.jit import jit
from elute.kernels.merge import merge_cells

CLICKS = 16
"""The histogram of clicks an item counts them up to here, the last entry and more."""

Flags = NDArray[np.bool_]


def pose_partition(partition: Partition, codes: Codes) -> Cells:
    """the partition's cells under the merged factors `codes`."""
    if len(codes) == int(codes.max(initial=-1)) + 1:
        return partition.cells
    return Cells(*merge_cells(*partition.cells, codes))


class Outline(NamedTuple):
    """What is to be known before a fit. Forests by factor: all cells', and that of cells with clicks; `clicked`,
    `shown`, `linking` (clicks of items shown under another too) and `cells` by factor; items by their number of clicks;
    cells clicked every time."""

    root: Codes
    clicked_root: Codes
    clicked: Floats
    shown: Floats
    linking: Floats
    cells: NDArray[np.int64]
    items_by_clicks: NDArray[np.int64]
    bounds: int

    def merge(self, other: Outline) -> Outline:
        return Outline(
            merge_edges(self.root, spanning_edges(other.root)),
            merge_edges(self.clicked_root, spanning_edges(other.clicked_root)),
            self.clicked + other.clicked,
            self.shown + other.shown,
            self.linking + other.linking,
            self.cells + other.cells,
            self.items_by_clicks + other.items_by_clicks,
            self.bounds + other.bounds,
        )


@dataclass(frozen=True)
class OutlineTask:
    """Partition to `Outline`."""

    codes: Codes
    n_factors: int

    def __call__(self, partition: Partition) -> Outline:
        cells, n = pose_partition(partition, self.codes), self.n_factors
        clicks = np.minimum(total_by_item(cells.offsets, cells.clicks), CLICKS - 1).astype(np.int64)
        return Outline(
            root=connect_cells(cells.offsets, cells.factor, n),
            clicked_root=boundary.group_by_clicks(cells, n).group,
            clicked=total_by_factor(cells.factor, cells.clicks, n),
            shown=total_by_factor(cells.factor, cells.impressions, n),
            linking=total_linking_clicks(cells.offsets, cells.factor, cells.clicks, n),
            cells=np.bincount(cells.factor, minlength=n),
            items_by_clicks=np.bincount(clicks, minlength=CLICKS),
            bounds=int(np.count_nonzero(cells.impressions == cells.clicks)),
        )


@dataclass(frozen=True)
class CrossingTask:
    """Partition to the links between groups that `boundary.find_strong_parts` needs, each once, as a · factors + b."""

    codes: Codes
    group: Codes
    clicked: Flags

    def __call__(self, partition: Partition) -> NDArray[np.int64]:
        cells, n = pose_partition(partition, self.codes), len(self.group)
        found = boundary.ClickGroups(self.group, boundary.group_by_clicks(cells, n).first, self.clicked)
        links = boundary.find_crossings(cells, found).astype(np.int64)
        return np.unique(links[:, 0] * n + links[:, 1])


def unite_links(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Links of either."""
    return np.union1d(one, other)


class Terms(NamedTuple):
    """A log-likelihood in log o, items eliminated: its value, gradient, and minus its second derivative: the diagonal
    and, up to as many factors as a matrix is kept for, all of it."""

    value: float
    gradient: Floats
    diagonal: Floats
    matrix: Floats

    def merge(self, other: Terms) -> Terms:
        sums = (a + b for a, b in zip(self[1:], other[1:], strict=True))
        return Terms(self.value + other.value, *sums)


@dataclass(frozen=True)
class LikelihoodTask:
    """Partition to `Terms`. `barrier`: as in `profile.fit_items`; None: the conditional likelihood."""

    codes: Codes
    of_factor: Codes
    log_o: Floats
    barrier: float | None
    keep_matrix: bool

    def __call__(self, partition: Partition) -> Terms:
        cells, weight, value, gradient, scale = self.linearise(partition)
        n = len(self.log_o)
        everyone = np.arange(n, dtype=np.int32)
        matrix = grounded_laplacian(*cells[:2], weight, everyone, n) if self.keep_matrix else np.empty((0, 0))
        return Terms(value, gradient, scale, matrix)

    def linearise(self, partition: Partition) -> tuple[Cells, Floats, float, Floats, Floats]:
        """The cells that say something, their weights, value, gradient and diagonal."""
        cells = pose_partition(partition, self.codes)
        of_item = boundary.assign_items(boundary.group_by_clicks(cells, len(self.log_o)).first, self.of_factor)
        cells = boundary.keep_informative(cells, self.of_factor, of_item)
        weight, gradient, scale = np.empty(len(cells.factor)), np.zeros_like(self.log_o), np.zeros_like(self.log_o)
        if self.barrier is None:
            value = conditional.linearise(*cells, self.log_o, weight, gradient, scale)
        else:
            r = fit_items(*cells, np.exp(self.log_o), self.barrier)
            value = _linearise(*cells, self.log_o, r, self.barrier, weight, gradient, scale)
        return cells, weight, value, gradient, scale


@dataclass(frozen=True)
class ProductTask:
    """Partition to its part of L·v, for likelihoods whose matrix is too large to keep."""

    at: LikelihoodTask
    v: Floats

    def __call__(self, partition: Partition) -> Floats:
        cells, weight, *_ = self.at.linearise(partition)
        return multiply(*cells[:2], weight, self.v)


@jit
def _linearise(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    log_o: Floats,
    r: Floats,
    barrier: float,
    weight: Floats,
    gradient: Floats,
    scale: Floats,
) -> float:
    """The likelihood at every item's best relevance `r`. A cell clicked every time has `barrier` impressions without
    one more: that keeps it smooth, and tends to the likelihood itself as `barrier` goes to 0."""
    value = 0.0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        theta = math.log(r[item])
        total = 0.0
        rest = 0.0
        for cell in range(begin, end):
            t = factor[cell]
            c = float(clicks[cell])
            s = max(float(impressions[cell]) - c, scale_barrier(c, barrier))
            p = min(math.exp(theta + log_o[t]), BELOW_ONE)
            value += c * (theta + log_o[t]) + s * math.log1p(-p)
            pull = c - s * p / (1.0 - p)
            gradient[t] += pull
            rest += pull
            weight[cell] = s * p / (1.0 - p) ** 2
            total += weight[cell]
        for cell in range(begin, end):
            gradient[factor[cell]] -= weight[cell] / total * rest
            scale[factor[cell]] += weight[cell] * ((total - weight[cell]) / total)
    return value

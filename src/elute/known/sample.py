"""The cells that precision is measured on: all of them, or so many as answer well.

Of a large log some queries are drawn, with all their items, so that clusters stay whole. A factor with few cells would
lose most of them by that: items shown under such a factor are all kept. Each item has the weight 1/(its chance of being
kept), and sums over items estimate those over all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts, Membership
from elute.cells.partitions import Partition, Partitions
from elute.estimate.partitioned.items import join_cells, select_items
from elute.estimate.partitioned.work import CrossingTask, Outline, OutlineTask, pose_partition, unite_links
from elute.estimate.solve import boundary
from elute.estimate.solve.problem import Codes, Floats, MergingPlan, Problem, number_merged, pose, total_by_factor
from elute.identify.components import number_components
from elute.kernels.jit import jit

CELLS = 1_000_000
"""Cells up to which all are used, and about as many of a sample."""

_FEW = 50
"""Cells of a factor that a sample would leave it: below, all its items are kept."""

_SEED = 0


@dataclass(frozen=True, eq=False)
class Sample:
    """A problem of some items, and what is known of all.

    `weight`: by item. `position`: by item of the log, its number here or -1; empty where the log has no numbers for
    its items. `members`: numbers of items and codes of the queries they were shown for; None where that is not known.
    `query`: by item, its code; None where items have none, or several. `shown`, `clicked`: by factor
    of the problem, over all items. `part`: of every factor, within which ratios are finite (`boundary`)."""

    problem: Problem
    weight: Floats
    position: NDArray[np.int64]
    members: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    query: NDArray[np.int64] | None
    shown: Floats
    clicked: Floats
    part: Codes
    items: int
    """Of all."""

    @property
    def share(self) -> float:
        """Of the items that are in the sample."""
        return self.problem.n_items / self.items


def sample_counts(counts: Counts, plan: MergingPlan | None, cells: int = CELLS) -> Sample:
    """Of counts in memory."""
    whole = pose(counts, plan)
    n = whole.n_factors
    shown, clicked = (total_by_factor(whole.cells.factor, amounts, n) for amounts in whole.cells[2:])
    part = boundary.find_parts(whole.cells, n)[0]
    query = None if counts.membership is None else _find_queries(counts.membership, whole.n_items)
    chosen, weight = np.arange(whole.n_items), np.ones(whole.n_items)
    if len(whole.cells.factor) > cells:
        share = cells / len(whole.cells.factor)
        group = chosen if query is None else query
        lucky = (np.random.default_rng(_SEED).random(int(group.max()) + 1) < share)[group]
        thin = np.bincount(whole.cells.factor, minlength=n) * share < _FEW
        forced = _find_shown_under(*whole.cells[:2], thin)
        chosen = np.flatnonzero(lucky | forced)
        weight = np.where(forced, 1.0, 1.0 / share)[chosen]
        query = None if query is None else query[chosen]
    cut = whole if len(chosen) == whole.n_items else _restrict(whole, select_items(whole.cells, chosen))
    position = np.full(whole.n_items, -1)
    position[chosen] = np.arange(len(chosen))
    members = None
    if counts.membership is not None:
        inside = position[counts.membership.item]
        members = inside[inside >= 0], counts.membership.query[inside >= 0].astype(np.int64)
    return Sample(cut, weight, position, members, query, shown, clicked, part, whole.n_items)


def sample_partitions(partitions: Partitions, plan: MergingPlan | None, cells: int, total: int) -> Sample:
    """Of cells that no machine holds at once, `total` of them; queries are not known there."""
    codes = number_merged(partitions.factors, plan)
    n = int(codes.max()) + 1
    outline = partitions.map_reduce(OutlineTask(codes, n), Outline.merge)
    links = partitions.map_reduce(CrossingTask(codes, outline.clicked_root, outline.clicked > 0), unite_links)
    edges = np.stack((links // n, links % n), axis=1).astype(np.int32)
    part = boundary.find_strong_parts(outline.clicked_root, outline.clicked > 0, edges)
    share = min(1.0, cells / total)
    drawn = partitions.map_reduce(DrawTask(codes, share, outline.cells * share < _FEW), Drawn.merge)
    component = number_components(outline.root, outline.shown.astype(np.int64)).of_factor
    problem = Problem(drawn.cells, codes, component, partitions.factors)
    items = int(outline.items_by_clicks.sum())
    return Sample(problem, drawn.weight, np.empty(0, np.int64), None, None, outline.shown, outline.clicked, part, items)


class Drawn(NamedTuple):
    """Some items' cells, and their weights."""

    cells: Cells
    weight: Floats

    def merge(self, other: Drawn) -> Drawn:
        return Drawn(join_cells(self.cells, other.cells), np.concatenate((self.weight, other.weight)))


@dataclass(frozen=True)
class DrawTask:
    """Partition to a sample of its items; `thin`: factors all of whose items are kept."""

    codes: Codes
    share: float
    thin: NDArray[np.bool_]

    def __call__(self, partition: Partition) -> Drawn:
        cells = pose_partition(partition, self.codes)
        rng = np.random.default_rng([_SEED, partition.number])
        forced = _find_shown_under(*cells[:2], self.thin)
        chosen = np.flatnonzero((rng.random(len(cells.offsets) - 1) < self.share) | forced)
        return Drawn(select_items(cells, chosen), np.where(forced[chosen], 1.0, 1.0 / self.share))


def _restrict(whole: Problem, cells: Cells) -> Problem:
    return Problem(cells, whole.merged, whole.component, whole.factors)


def _find_queries(members: Membership, items: int) -> NDArray[np.int64] | None:
    """The query of every item; None where some item has several."""
    if len(members.item) != items:
        return None
    out = np.empty(items, np.int64)
    out[members.item] = members.query
    return out


@jit
def _find_shown_under(offsets: NDArray[np.int64], factor: Codes, some: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """By item: whether it was shown under one of these factors."""
    out = np.zeros(offsets.shape[0] - 1, np.bool_)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            if some[factor[cell]]:
                out[item] = True
                break
    return out

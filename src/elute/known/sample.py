"""The cells that precision is measured on: all of them, or so many as answer well.

Of a large log some queries are drawn, with their items, so that clusters stay whole. A factor with few cells would lose
most of them by that: an item's chance is such that each of its factors keeps some. Each item has the weight 1/(its
chance), and sums over items estimate those over all. Items and queries have numbers that are the same wherever the log
was counted (`canonical`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.threads import run_beside
from elute.cells.canonical import Hashes, hash_items
from elute.cells.counts import Cells, Counts, Membership
from elute.cells.partitions import Partition, Partitions
from elute.estimate.partitioned.items import join_cells, select_items
from elute.estimate.partitioned.tied import tie_partitions
from elute.estimate.partitioned.work import Outline, OutlineTask, pose_partition
from elute.estimate.solve.effect_boundary import find_problem_parts
from elute.estimate.solve.problem import (
    Codes,
    Floats,
    MergingPlan,
    Problem,
    count_by_factor,
    number_merged,
    pose,
    total_by_factor,
)
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit
from elute.known.canonical import rank_items, rank_queries

CELLS = 1_000_000
"""Cells up to which all are used, and about as many of a sample."""

MANY_FACTORS, CELLS_OF_MANY = 600, 500_000
"""Of a log with so many factors, whose errors are drawn, fewer cells are used."""

_FEW = 20
"""Cells of a factor that a sample leaves it, about, where the factor has as many."""

_SEED = 0

_Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sample:
    """A problem of some items, and what is known of all.

    `weight`: by item. `fair`: by item, whether it is here by no more than an even chance: these are as all items are.
    `position`: by item of the log, its number here or -1; empty where the log has no numbers for
    its items. `members`: numbers of items and codes of the queries they were shown for; None where that is not known.
    `query`: by item, its code; None where items have none, or several. `shown`, `clicked`: by factor
    of the problem, over all items. `part`: of every factor, within which ratios are finite (`boundary`)."""

    problem: Problem
    weight: Floats
    fair: NDArray[np.bool_]
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


def sample_counts(counts: Counts, plan: MergingPlan | None, cells: int | None = None) -> Sample:
    """Of counts in memory; about so many `cells`."""
    whole = pose(counts, plan)
    n = whole.n_factors
    cells = choose_size(n) if cells is None else cells
    members = counts.membership

    def hash_all() -> tuple[Hashes, Codes | None]:
        found = hash_items(whole.cells)
        return found, None if members is None else rank_queries(found, members.item, members.query, members.queries)

    def total() -> list[Floats]:
        return [total_by_factor(whole.cells.factor, amounts, n) for amounts in whole.cells[2:]]

    part, ((hashed, rank), (shown, clicked)) = run_beside(lambda: find_problem_parts(whole), (hash_all, total))
    query = None if members is None else _find_queries(members, whole.n_items)
    if len(whole.cells.factor) <= cells:
        chosen, weight, fair = np.arange(whole.n_items), np.ones(whole.n_items), np.ones(whole.n_items, np.bool_)
    else:
        rng = np.random.default_rng(_SEED)
        if query is None or rank is None:
            group, luck = rank_items(hashed), rng.random(whole.n_items)
        else:
            group, luck = query, rng.random(len(rank))[rank]
        wanted = _choose_shares(cells, count_by_factor(whole.cells.factor, n))
        chosen, chance, least = _draw_items(whole.cells, wanted, group, luck)
        weight, fair = 1.0 / chance, luck[group[chosen]] < least
    order = np.argsort(hashed[chosen], kind="stable")
    chosen, weight, fair = chosen[order], weight[order], fair[order]
    position = np.full(whole.n_items, -1)
    position[chosen] = numbers = np.arange(len(chosen))
    of_query = shown_for = None
    if members is not None and rank is not None:
        of_query = None if query is None else rank[query[chosen]]
        shown_for = (
            _order_members(numbers, of_query) if of_query is not None else _number_members(members, position, rank)
        )
    return Sample(
        replace(
            whole,
            cells=select_items(whole.cells, chosen),
            design=None if whole.design is None else whole.design.roughen(),
        ),
        weight,
        fair,
        position,
        shown_for,
        None if of_query is None else of_query.astype(np.int64),
        shown,
        clicked,
        part,
        whole.n_items,
    )


def choose_size(factors: int) -> int:
    """How many cells answer well."""
    return CELLS if factors < MANY_FACTORS else CELLS_OF_MANY


def sample_partitions(partitions: Partitions, plan: MergingPlan | None, cells: int | None = None) -> Sample:
    """Of cells that no machine holds at once; queries are not known there."""
    codes = number_merged(partitions.factors, plan)
    n = int(codes.max()) + 1
    cells = choose_size(n) if cells is None else cells
    outline = partitions.map_reduce(OutlineTask(codes, n), Outline.merge)
    tied = tie_partitions(partitions, codes, outline)
    drawn = partitions.map_reduce(DrawTask(codes, cells, outline.cells), Drawn.merge)
    problem = Problem(drawn.cells, codes, tied.component, partitions.factors, tied.rough)
    items = int(outline.items_by_clicks.sum())
    return Sample(
        problem,
        drawn.weight,
        drawn.fair,
        np.empty(0, np.int64),
        None,
        None,
        outline.shown,
        outline.clicked,
        tied.part,
        items,
    )


class Drawn(NamedTuple):
    """Some items' cells, their weights, and whether they are here by an even chance."""

    cells: Cells
    weight: Floats
    fair: NDArray[np.bool_]

    def merge(self, other: Drawn) -> Drawn:
        cells = join_cells(self.cells, other.cells)
        return Drawn(cells, np.concatenate((self.weight, other.weight)), np.concatenate((self.fair, other.fair)))


@dataclass(frozen=True)
class DrawTask:
    """Partition to a sample of its items: about `size` cells of all, which each factor has `cells` of."""

    codes: Codes
    size: int
    cells: NDArray[np.int64]

    def __call__(self, partition: Partition) -> Drawn:
        cells = pose_partition(partition, self.codes)
        chance = _find_chances(cells, self.size, self.cells)
        luck = np.random.default_rng([_SEED, partition.number]).random(len(chance))
        chosen = np.flatnonzero(luck < chance)
        even = self.size / max(int(self.cells.sum()), 1)
        return Drawn(select_items(cells, chosen), 1.0 / chance[chosen], luck[chosen] < even)


def _find_chances(cells: Cells, size: int, by_factor: NDArray[np.int64]) -> Floats:
    """By item: its chance to be in a sample of about `size` cells, and such that no factor keeps too few."""
    return _find_largest(*cells[:2], _choose_shares(size, by_factor))


def _choose_shares(size: int, by_factor: NDArray[np.int64]) -> Floats:
    """By factor: the share of its items to draw."""
    share = min(1.0, size / max(int(by_factor.sum()), 1))
    return np.minimum(np.maximum(share, _FEW / np.maximum(by_factor, 1)), 1.0)


def _draw_items(cells: Cells, wanted: Floats, group: Codes, luck: Floats) -> tuple[_Numbers, Floats, float]:
    """Items whose luck, that of their group, is below their chance; the chances of these, and the least of all."""
    found = map_blocks(lambda own, ends: _draw(ends, cells.factor, wanted, group[own], luck, own.start), cells.offsets)
    chosen, chance, least = zip(*found, strict=True)
    return np.concatenate(chosen), np.concatenate(chance), min(least)


def _find_queries(members: Membership, items: int) -> Codes | None:
    """The query of every item; None where some item has several."""
    if len(members.item) != items:
        return None
    if np.array_equal(members.item, np.arange(items, dtype=np.int32)):
        return members.query
    out = np.empty(items, np.int32)
    out[members.item] = members.query
    return out


def _number_members(members: Membership, position: NDArray[np.int64], rank: Codes) -> tuple[_Numbers, _Numbers]:
    """Items of the sample and their queries."""
    item = position[members.item]
    here = np.flatnonzero(item >= 0)
    return _order_members(item[here], rank[members.query[here]])


def _order_members(item: _Numbers, query: Codes) -> tuple[_Numbers, _Numbers]:
    order = np.lexsort((item, query))
    return item[order], query[order].astype(np.int64)


@jit
def _draw(
    offsets: NDArray[np.int64], factor: Codes, wanted: Floats, group: Codes, luck: Floats, first: int
) -> tuple[_Numbers, Floats, float]:
    chance = _find_largest(offsets, factor, wanted)
    least = 1.0
    n = 0
    chosen = np.empty(chance.shape[0], np.int64)
    for item in range(chance.shape[0]):
        least = min(least, chance[item])
        if luck[group[item]] < chance[item]:
            chosen[n] = first + item
            chance[n] = chance[item]
            n += 1
    return chosen[:n].copy(), chance[:n].copy(), least


@jit
def _find_largest(offsets: NDArray[np.int64], factor: Codes, value: Floats) -> Floats:
    """By item: the largest value of its factors."""
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            out[item] = max(out[item], value[factor[cell]])
    return out

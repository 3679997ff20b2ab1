"""From the cells of some items to what a check needs of them.

The same for every engine: the embedded one has all items at once, or some of them where memory is short; Spark has
those of a partition on the executor that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Membership, sum_by_item
from elute.cells.partitions import Partition
from elute.cells.structure import Structure
from elute.engines.counted import CountedCells
from elute.kernels.forest import connect_cells, merge_edges, spanning_edges
from elute.kernels.unionfind import singletons


class Summary(NamedTuple):
    """The cells of some items, as far as a check needs them."""

    root: NDArray[np.int32]
    """The forest of these items: for every factor the smallest of its tree."""
    items_under: NDArray[np.int64]
    """By factor."""
    items_in: NDArray[np.int64]
    """By the smallest factor of a tree."""
    items_once: int
    queries: QueryRows | None


class Totals:
    """Summaries of items in several places, added up as they come, in any order."""

    def __init__(self, n_factors: int) -> None:
        self.root = singletons(n_factors)
        self.items_under = np.zeros(n_factors, np.int64)
        self.items_in = np.zeros(n_factors, np.int64)
        self.items_once = 0

    def add(
        self,
        forest: NDArray[np.int32],
        items_under: NDArray[np.int64],
        items_in: NDArray[np.int64],
        items_once: int,
    ) -> None:
        """`forest`: edges; `items_in`: by the smallest factor of a tree of it."""
        self.root = merge_edges(self.root, forest)
        self.items_under += items_under
        self.items_in += items_in
        self.items_once += items_once

    def include(self, found: Summary) -> None:
        """The summary of some items."""
        self.add(spanning_edges(found.root), found.items_under, found.items_in, found.items_once)

    def to_structure(self, queries: int | None, busiest: int, exact: bool) -> Structure:
        """Of all that was added."""
        items_in = np.bincount(self.root, weights=self.items_in, minlength=len(self.root)).astype(np.int64)
        items = int(items_in.sum())
        bound = 0.0 if exact else items * (items - 1) / 2**65
        return Structure(self.root, self.items_under, items_in, self.items_once, queries, busiest, bound)


class QueryRows(NamedTuple):
    """For every query and tree of the forest that meet: the query's code, the tree's smallest factor, items and
    impressions. Small where queries have several items."""

    query: NDArray[np.int64]
    root: NDArray[np.int64]
    items: NDArray[np.int64]
    impressions: NDArray[np.int64]


def summarise_cells(counted: CountedCells, n_factors: int) -> Summary:
    """What a check needs of these cells; nothing in it is as long as the items, but for the queries' rows."""
    root = connect_cells(counted.offsets, counted.factor, n_factors)
    of_item = root[counted.factor[counted.offsets[:-1]]]
    once = np.count_nonzero(sum_by_item(counted.offsets, counted.impressions) == 1) if len(of_item) else 0
    return Summary(
        root=root,
        items_under=np.bincount(counted.factor, minlength=n_factors),
        items_in=np.bincount(of_item, minlength=n_factors),
        items_once=int(once),
        queries=None if counted.membership is None else _tally_queries(counted.membership, of_item, n_factors),
    )


@dataclass(frozen=True)
class LinkFactors:
    """A partition's cells to their forest, by factor."""

    n_factors: int

    def __call__(self, partition: Partition) -> NDArray[np.int32]:
        return connect_cells(partition.cells.offsets, partition.cells.factor, self.n_factors)


def merge_forests(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """The forest of two."""
    return merge_edges(one, spanning_edges(other))


def _tally_queries(members: Membership, root_of_item: NDArray[np.int32], n_factors: int) -> QueryRows:
    pair = members.query.astype(np.int64) * n_factors + root_of_item[members.item]
    found, place = np.unique(pair, return_inverse=True)
    shown = np.zeros(len(found), np.int64)
    np.add.at(shown, place, members.impressions)
    return QueryRows(found // n_factors, found % n_factors, np.bincount(place, minlength=len(found)), shown)

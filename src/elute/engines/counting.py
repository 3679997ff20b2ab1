"""From rows to cells, and from the cells of some items to what a check needs of them.

The same for every engine: the embedded one counts all items at once, or some of them in each pass where memory is
short; Spark counts the items of a partition on the executor that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Membership, sum_by_item
from elute.cells.partitions import Partition
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.errors import EluteError
from elute.kernels.cells import CellCounter
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.keys import MAX_KEYS, KeyTable
from elute.kernels.unionfind import find_roots, link_cells, singletons

ROWS_AN_ITEM = 16
"""A guess, to spare the table of items most of its growth; a wrong one costs time, nothing else."""

Keys = NDArray[np.uint64]

_NOTHING: NDArray[np.int64] = np.empty(0, np.int64)


class RowBatch(NamedTuple):
    """Some rows of the log: keys of their ids, and their counts where asked for."""

    item: Keys
    factor: Keys
    query: Keys | None = None
    clicks: NDArray[np.uint8] | NDArray[np.int64] = _NOTHING
    impressions: NDArray[np.int64] | None = None


class CountedCells(NamedTuple):
    """Cells in the order of their items, as in `Counts`."""

    offsets: NDArray[np.int64]
    factor: NDArray[np.int32]
    impressions: Amounts
    clicks: Amounts
    membership: Membership | None


class Counter:
    """Feed it all rows of some items, in any order and in any batches."""

    def __init__(self, roles: Roles, factors: Keys, rows: int, impressions: int, partitions: int = 1) -> None:
        """`factors`: the keys of all factors, in the order of their codes. `rows` and `impressions`: of the whole
        log; about one in `partitions` of them will come."""
        self.items, self.queries, self.factors = (
            KeyTable(rows // partitions // ROWS_AN_ITEM),
            KeyTable(),
            index_keys(factors),
        )
        expected = rows // partitions + 1
        self._cells = CellCounter(len(factors), expected, impressions)
        self._pairs = None
        if roles.query is not None and not roles.items_within_queries:
            self._pairs = CellCounter(min(rows, MAX_KEYS), expected, impressions)
        self._query_of_item: list[NDArray[np.int32]] = []

    def add(self, batch: RowBatch) -> None:
        factor = self.factors.find(batch.factor)
        if len(factor) and factor.min() < 0:
            raise EluteError("the log changed while it was being read: a new factor appeared; run again")
        item, fresh = self.items.insert(batch.item)
        self._cells.add(item, factor, batch.clicks, batch.impressions)
        if self._pairs is not None and batch.query is not None:
            self._pairs.add(item, self.queries.insert(batch.query)[0], batch.clicks, batch.impressions)
        elif batch.query is not None:
            self._query_of_item.append(self.queries.insert(batch.query[fresh])[0])

    def finish(self) -> CountedCells:
        """The cells. The tables of keys stay, the rest is spent."""
        offsets, factor, impressions, clicks = self._cells.finish(len(self.items))
        membership = None
        if self._pairs is not None:
            by_item, query, shown, _ = self._pairs.finish(len(self.items))
            member = np.repeat(np.arange(len(self.items), dtype=np.int32), np.diff(by_item))
            membership = Membership(len(self.queries), query, member, shown.astype(np.int64))
        elif self._query_of_item:
            member = np.arange(len(self.items), dtype=np.int32)
            query = np.concatenate(self._query_of_item)
            membership = Membership(len(self.queries), query, member, sum_by_item(offsets, impressions))
        return CountedCells(offsets, factor, impressions, clicks, membership)


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
    parent = singletons(n_factors)
    link_cells(parent, counted.offsets, counted.factor, np.arange(n_factors, dtype=np.int32))
    root = find_roots(parent)
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
        parent = singletons(self.n_factors)
        link_cells(parent, partition.cells.offsets, partition.cells.factor, np.arange(self.n_factors, dtype=np.int32))
        return find_roots(parent)


def merge_forests(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """The forest of two."""
    return merge_edges(one, spanning_edges(other))


def index_keys(keys: Keys) -> KeyTable:
    """A table in which the code of a key is its place."""
    table = KeyTable(len(keys))
    table.insert(keys)
    return table


def _tally_queries(members: Membership, root_of_item: NDArray[np.int32], n_factors: int) -> QueryRows:
    pair = members.query.astype(np.int64) * n_factors + root_of_item[members.item]
    found, place = np.unique(pair, return_inverse=True)
    shown = np.zeros(len(found), np.int64)
    np.add.at(shown, place, members.impressions)
    return QueryRows(found // n_factors, found % n_factors, np.bincount(place, minlength=len(found)), shown)

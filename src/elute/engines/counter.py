"""From rows to cells, on all cores: rows are put aside by partition as they come, then each partition is counted.

The same for every engine: the embedded one counts all items at once, or some of them where memory is short; Spark
counts those of a partition on the executor that holds it. What comes out does not hang on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.threads import map_threads
from elute.cells.counts import Amounts, Membership, sum_by_item
from elute.cells.roles import Roles
from elute.engines.counted import NO_KEYS, CountedCells, order_items
from elute.engines.pieces import CELLS_A_PIECE, Keys, Piece, Workspace, concatenate, join_pairs, number_queries
from elute.errors import EluteError
from elute.kernels import partition, rows
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.keys import MAX_KEYS, KeyTable
from elute.kernels.unionfind import Parents, find_roots, singletons

ROWS_A_SPLIT = 4_000_000
"""A partition with more rows, as one with a query that everybody asks, is counted in several splits of its items."""

RUNS = 256
"""Runs of partitions that threads take one after the other."""

_NO_CLICKS: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_PLACES: NDArray[np.int64] = np.empty(0, np.int64)


class RowBatch(NamedTuple):
    """Some rows of the log: keys of their ids, codes of their factors (-1: unknown), and their counts where asked
    for. `places`: what partitions go by, of the query where items lie within queries, else of the item; keys, where the
    order of items may differ from run to run."""

    item: Keys
    factor: NDArray[np.int32]
    query: Keys | None = None
    clicks: NDArray[np.uint8] | NDArray[np.int64] = _NO_CLICKS
    impressions: NDArray[np.int64] | None = None
    places: Keys | None = None


class _Stored(NamedTuple):
    """A batch: its place among all, where its rows begin, and where those of each partition begin from there."""

    place: tuple[int, int]
    base: int
    starts: NDArray[np.int32]


_Batches = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Where batches begin, and by batch where each partition begins from there."""


class _Job(NamedTuple):
    """Consecutive partitions, or a split of one; their rows, and those of the largest."""

    begin: int
    end: int
    split: int
    splits: int
    size: int
    largest: int


class Counter:
    """Feed it all rows of some items, in any order and in any batches."""

    def __init__(
        self,
        roles: Roles,
        n_factors: int,
        rows_expected: int,
        impressions: int,
        partitions: int = 1,
        keep_queries: bool = True,
    ) -> None:
        """`rows_expected` and `impressions`: of the whole log; about one in `partitions` of them will come.
        `keep_queries`: their keys are wanted afterwards."""
        self._n_factors = n_factors
        self._within = roles.query is not None and roles.items_within_queries
        self._across = roles.query is not None and not roles.items_within_queries
        self._weighted = roles.impressions is not None
        expected = rows_expected // partitions + 1
        whole = self._across or (keep_queries and self._within)
        self._layout = rows.choose_layout(expected, n_factors, self._within, whole)
        self._amount = np.dtype(np.uint32 if impressions < 1 << 32 else np.uint64)
        self._capacity = expected if partitions == 1 else expected + expected // 8
        self._room = rows.make_room(self._capacity, self._layout, self._weighted)
        self._filled = 0
        self._stored: list[_Stored] = []
        self._lock = threading.Lock()
        self._work = threading.local()

    def add(self, batch: RowBatch, place: tuple[int, int] | None = None) -> None:
        """`place`: that of the batch among all, where several threads add them at once: then no more rows may come than
        were expected."""
        n, layout = len(batch.item), self._layout
        with self._lock:
            base = self._filled
            self._filled += n
            if self._filled > self._capacity:
                if place is not None:
                    raise _explain_change("more rows came than it had")
                self._grow()
            room = self._room
        starts = np.empty(layout.partitions + 1, np.int32)
        order = np.empty(n, np.int64) if self._weighted else _NO_PLACES
        query = NO_KEYS if batch.query is None else batch.query
        done = rows.scatter_rows(
            batch.item,
            query,
            batch.places if batch.places is not None else query if layout.by_query else batch.item,
            batch.factor,
            _NO_CLICKS if self._weighted else batch.clicks.astype(np.uint8, copy=False),
            layout.bits,
            layout.code_bits,
            layout.by_query,
            layout.wide,
            room.words,
            room.codes,
            base,
            order,
            starts,
        )
        if not done:
            raise _explain_change("a new factor appeared")
        if batch.impressions is not None:
            room.shown[order] = batch.impressions
            room.clicked[order] = batch.clicks if len(batch.clicks) else 0
        with self._lock:
            self._stored.append(_Stored(place or (0, len(self._stored)), base, starts))

    def connect(self) -> Parents:
        """For every factor the smallest of its component. The rows are spent."""
        bases, starts = self._take_batches()
        n, layout, own = self._n_factors, self._layout, self._work
        forests: list[Parents] = []

        def link(part: int) -> None:
            if not hasattr(own, "parent"):
                own.parent = singletons(n)
                forests.append(own.parent)
            size = partition.count_rows(starts, part)
            partition.link_partition(
                self._room.words,
                self._room.codes,
                bases,
                starts,
                part,
                layout.code_bits,
                np.empty(size, np.uint64),
                np.empty(size, np.int32),
                own.parent,
            )

        map_threads(link, range(layout.partitions))
        self._room = rows.make_room(0, layout, False)
        root = singletons(n)
        for forest in forests:
            root = merge_edges(root, spanning_edges(find_roots(forest)))
        return root

    def finish(self) -> CountedCells:
        """The cells. The rows are spent."""
        batches = self._take_batches()
        jobs = self._list_jobs(np.diff(batches[1], axis=1).sum(axis=0, dtype=np.int64).tolist())

        def count(job: _Job) -> tuple[Piece, tuple[Piece, Keys] | None]:
            found = self._count(batches, job, self._layout.code_bits)
            if not self._across:
                return found, None
            named = np.empty(job.size, np.uint64)
            words, codes = self._room.words, self._room.codes
            n = partition.name_by_query(words, codes, *batches, job.begin, job.split, job.splits, named)
            return found, (self._count(batches, job, max(n - 1, 1).bit_length() + 1), named[:n].copy())

        by_size = sorted(jobs, key=lambda job: -job.size)  # no thread is left with a large one at the end
        answers = dict(zip(by_size, map_threads(count, by_size), strict=True))
        self._room = rows.make_room(0, self._layout, False)
        self._work = threading.local()
        membership, queries = None, NO_KEYS
        if self._across:
            membership, queries = join_pairs([pairs for job in jobs for pairs in [answers[job][1]] if pairs])
        return self._join([answers.pop(job)[0] for job in jobs], membership, queries, jobs)

    def _join(
        self, found: list[Piece], membership: Membership | None, queries: Keys, jobs: Sequence[_Job]
    ) -> CountedCells:
        """What the partitions have, one after the other."""
        items, sizes = (concatenate([one[at] for one in found], kind) for at, kind in ((0, np.uint64), (2, np.int32)))
        if len(items) > MAX_KEYS:
            raise EluteError(f"more than {MAX_KEYS:,} distinct ids: too many for one machine")
        factor, shown = concatenate([one.factor for one in found], np.int32), self._concatenate_amounts(found, 4)
        offsets = np.zeros(len(items) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if self._within:
            by_part: dict[int, list[Keys]] = {}
            for job, one in zip(jobs, found, strict=True):
                by_part.setdefault(job.begin, []).append(one.queries)
            code, queries = number_queries(list(by_part.values()))
            members = np.arange(len(items), dtype=np.int32)
            membership = Membership(len(queries), code, members, sum_by_item(offsets, shown))
        kept = queries if self._layout.wide else NO_KEYS
        counted = CountedCells(offsets, factor, shown, self._concatenate_amounts(found, 5), membership, items, kept)
        ranges = _find_splits(jobs, np.cumsum([0, *(len(one.items) for one in found)]).tolist())
        return order_items(counted, ranges) if ranges else counted

    def _concatenate_amounts(self, found: list[Piece], field: int) -> Amounts:
        return concatenate([one[field] for one in found], self._amount)

    def _list_jobs(self, sizes: list[int]) -> list[_Job]:
        """Runs of small partitions, and splits of large ones. Where pairs are counted too, one partition each."""
        most = 0 if self._across else max(sum(sizes) // RUNS, rows.ROWS_A_PARTITION)
        jobs: list[_Job] = []
        for part, size in enumerate(sizes):
            splits = max(1, -(-size // ROWS_A_SPLIT))
            last = jobs[-1] if jobs else None
            if last is not None and splits == last.splits == 1 and last.size + size <= most:
                jobs[-1] = last._replace(end=part + 1, size=last.size + size, largest=max(last.largest, size))
            else:
                jobs += [_Job(part, part + 1, split, splits, size, size) for split in range(splits)]
        return jobs

    def _count(self, batches: _Batches, job: _Job, code_bits: int) -> Piece:
        work: Workspace | None = getattr(self._work, "space", None)
        if work is None or not work.has_room(job.size, job.largest):
            cells = max(job.size, min(CELLS_A_PIECE, self._filled))
            work = self._work.space = Workspace(cells, job.largest, self._amount)
        bits = self._layout.bits if self._layout.by_query and not self._layout.wide else 0
        where = (job.begin, job.end), (job.split, job.splits)
        found = partition.count_partitions(self._room, *batches, *where, bits, code_bits, *work.rows, work.free)
        return work.take(*found)

    def _take_batches(self) -> _Batches:
        """In the order of the log, whichever thread stored them when."""
        ordered = sorted(self._stored, key=lambda stored: stored.place)
        self._stored = []
        bases = np.array([stored.base for stored in ordered], np.int64)
        starts = np.stack([stored.starts for stored in ordered]) if ordered else np.empty((0, 2), np.int32)
        return bases, starts

    def _grow(self) -> None:
        self._capacity = max(2 * self._capacity, self._filled)
        larger = rows.make_room(self._capacity, self._layout, self._weighted)
        arrays: list[tuple[NDArray[Any], NDArray[Any]]] = list(zip(self._room, larger, strict=True))
        for old, new in arrays:
            new[: len(old)] = old
        self._room = larger


def _find_splits(jobs: Sequence[_Job], ends: list[int]) -> list[tuple[int, int]]:
    """Items of partitions that were counted in splits, which go by their keys."""
    found: dict[int, tuple[int, int]] = {}
    for number, job in enumerate(jobs):
        if job.splits > 1:
            found[job.begin] = found.get(job.begin, (ends[number],))[0], ends[number + 1]
    return list(found.values())


def index_keys(keys: Keys) -> KeyTable:
    """A table in which the code of a key is its place."""
    table = KeyTable(len(keys))
    table.insert(keys)
    return table


def _explain_change(what: str) -> EluteError:
    return EluteError(f"the log changed while it was being read: {what}; run again")

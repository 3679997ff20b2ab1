"""From rows to cells, on all cores: rows are put aside by partition as they come, then each partition is counted.

The same for every engine: the embedded one counts all items at once, or some of them where memory is short; Spark
counts those of a partition on the executor that holds it. What comes out does not hang on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from elute._util.threads import map_threads, split_evenly
from elute.cells.counts import Amounts, Membership
from elute.cells.roles import Roles
from elute.errors import EluteError
from elute.kernels import partition, rows
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.keys import MAX_KEYS, KeyTable
from elute.kernels.unionfind import Parents, find_roots, singletons

Keys = NDArray[np.uint64]

ROWS_A_SPLIT = 4_000_000
"""A partition with more rows, as one with a query that everybody asks, is counted in several splits of its items."""

_NO_CLICKS: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_KEYS: Keys = np.empty(0, np.uint64)
_NO_PLACES: NDArray[np.int64] = np.empty(0, np.int64)


class RowBatch(NamedTuple):
    """Some rows of the log: keys of their ids, and their counts where asked for."""

    item: Keys
    factor: Keys
    query: Keys | None = None
    clicks: NDArray[np.uint8] | NDArray[np.int64] = _NO_CLICKS
    impressions: NDArray[np.int64] | None = None


class CountedCells(NamedTuple):
    """Cells in the order of their items, as in `Counts`; the keys of items, and of queries where they were kept."""

    offsets: NDArray[np.int64]
    factor: NDArray[np.int32]
    impressions: Amounts
    clicks: Amounts
    membership: Membership | None
    items: Keys = _NO_KEYS
    queries: Keys = _NO_KEYS


class _Stored(NamedTuple):
    """A batch: its place among all, where its rows begin, and where those of each partition begin from there."""

    place: tuple[int, int]
    base: int
    starts: NDArray[np.int32]


class _Counted(NamedTuple):
    """What one partition, or one split of it, has."""

    items: Keys
    queries: Keys
    sizes: NDArray[np.int32]
    totals: NDArray[np.int64]
    factor: NDArray[np.int32]
    shown: Amounts
    clicked: Amounts


class _CountedLists(NamedTuple):
    """The same of all, piece by piece."""

    items: list[Keys]
    queries: list[Keys]
    sizes: list[NDArray[np.int32]]
    totals: list[NDArray[np.int64]]
    factor: list[NDArray[np.int32]]
    shown: list[Amounts]
    clicked: list[Amounts]


class _Job(NamedTuple):
    """A split of a partition, and the rows of the partition."""

    part: int
    split: int
    splits: int
    size: int


class Counter:
    """Feed it all rows of some items, in any order and in any batches."""

    def __init__(
        self,
        roles: Roles,
        factors: Keys,
        rows_expected: int,
        impressions: int,
        partitions: int = 1,
        keep_queries: bool = True,
    ) -> None:
        """`factors`: the keys of all factors, in the order of their codes. `rows_expected` and `impressions`: of the
        whole log; about one in `partitions` of them will come. `keep_queries`: their keys are wanted afterwards."""
        self.factors = index_keys(factors)
        self._within = roles.query is not None and roles.items_within_queries
        self._across = roles.query is not None and not roles.items_within_queries
        self._weighted = roles.impressions is not None
        expected = rows_expected // partitions + 1
        whole = self._across or (keep_queries and self._within)
        self._layout = rows.choose_layout(expected, len(factors), self._within, whole)
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
        done = rows.scatter_rows(
            batch.item,
            _NO_KEYS if batch.query is None else batch.query,
            self.factors.find(batch.factor),
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
        n, layout, own = len(self.factors), self._layout, self._work
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
        bases, starts = self._take_batches()
        jobs = [
            _Job(part, split, splits, size)
            for part in range(self._layout.partitions)
            for size in [partition.count_rows(starts, part)]
            for splits in [-(-size // ROWS_A_SPLIT)]
            for split in range(splits)
        ]

        def count(job: _Job) -> tuple[_Counted, _Counted, Keys]:
            where = bases, starts, job.part, job.split, job.splits
            found = self._count(where, job.size, self._layout.code_bits)
            if not self._across:
                return found, found, _NO_KEYS
            named = np.empty(job.size, np.uint64)
            n = partition.name_by_query(self._room.words, self._room.codes, *where, named)
            return found, self._count(where, job.size, max(n - 1, 1).bit_length() + 1), named[:n].copy()

        by_size = sorted(jobs, key=lambda job: -job.size)  # no thread is left with a large one at the end
        answers = dict(zip(by_size, map_threads(count, by_size), strict=True))
        self._room = rows.make_room(0, self._layout, False)
        found = _CountedLists(*([answers[job][0][at] for job in jobs] for at in range(len(_Counted._fields))))
        membership, queries = None, _NO_KEYS
        if self._across:
            membership, queries = _join_pairs([answers[job][1:] for job in jobs])
        answers.clear()
        return self._join(found, membership, queries, jobs)

    def _join(
        self, found: _CountedLists, membership: Membership | None, queries: Keys, jobs: Sequence[_Job]
    ) -> CountedCells:
        """What the partitions have, one after the other; pieces are given up as they are copied."""
        items, sizes = _concatenate(found.items, np.uint64), _concatenate(found.sizes, np.int32)
        if len(items) > MAX_KEYS:
            raise EluteError(f"more than {MAX_KEYS:,} distinct ids: too many for one machine")
        if self._within:
            by_part: dict[int, list[Keys]] = {}
            for job, keys in zip(jobs, found.queries, strict=True):
                by_part.setdefault(job.part, []).append(keys)
            code, queries = _number_queries(list(by_part.values()))
            totals = _concatenate(found.totals, np.int64)
            membership = Membership(len(queries), code, np.arange(len(items), dtype=np.int32), totals)
        return CountedCells(
            np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64))),
            _concatenate(found.factor, np.int32),
            _concatenate(found.shown, self._amount),
            _concatenate(found.clicked, self._amount),
            membership,
            items,
            queries if self._layout.wide else _NO_KEYS,
        )

    def _count(self, where: tuple[Any, ...], size: int, code_bits: int) -> _Counted:
        work = self._find_workspace(size)
        items, cells = partition.count_partition(*self._room, *where, code_bits, 1 << 12, *work)
        _, _, keys, queries, sizes, totals, factor, shown, clicked = work
        return _Counted(
            *(part[:items].copy() for part in (keys, queries, sizes, totals)),
            *(part[:cells].copy() for part in (factor, shown, clicked)),
        )

    def _find_workspace(self, size: int) -> tuple[NDArray[Any], ...]:
        """A thread's own, kept from one partition to the next."""
        own = self._work
        if not hasattr(own, "arrays") or len(own.arrays[0]) < size:
            key, amount = np.dtype(np.uint64), self._amount
            types = (key, key, key, key, np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.int32), amount, amount)
            own.arrays = tuple(np.empty(size, kind) for kind in types)
        return tuple(own.arrays)

    def _take_batches(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """In the order of the log, whichever thread stored them when."""
        ordered = sorted(self._stored, key=lambda stored: stored.place)
        self._stored = []
        bases = np.array([stored.base for stored in ordered], np.int64)
        starts = np.stack([stored.starts for stored in ordered]) if ordered else np.empty((0, 2), np.int32)
        return bases, starts

    def _grow(self) -> None:
        self._capacity = max(2 * self._capacity, self._filled)
        larger = rows.make_room(self._capacity, self._layout, self._weighted)
        for old, new in zip(self._room, larger, strict=True):
            new[: len(old)] = old
        self._room = larger


def index_keys(keys: Keys) -> KeyTable:
    """A table in which the code of a key is its place."""
    table = KeyTable(len(keys))
    table.insert(keys)
    return table


def _explain_change(what: str) -> EluteError:
    return EluteError(f"the log changed while it was being read: {what}; run again")


def _concatenate(pieces: list[NDArray[Any]], kind: DTypeLike) -> NDArray[Any]:
    """On all cores. The pieces are given up."""
    ends = np.cumsum([0, *(len(piece) for piece in pieces)]).tolist()
    out = np.empty(ends[-1], kind)

    def copy(bounds: tuple[int, int]) -> None:
        for at in range(*bounds):
            out[ends[at] : ends[at + 1]] = pieces[at]

    map_threads(copy, split_evenly(len(pieces)))
    pieces.clear()
    return out


def _number_queries(parts: list[list[Keys]]) -> tuple[NDArray[np.int32], Keys]:
    """Codes of the queries of items, and the queries' keys by code. No query is in two partitions."""

    def number(bounds: tuple[int, int]) -> list[tuple[NDArray[np.int32], Keys]]:
        out = []
        for pieces in parts[slice(*bounds)]:
            keys = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            codes, distinct = np.empty(len(keys), np.int32), np.empty(len(keys), np.uint64)
            used = partition.number_keys(keys, codes, distinct)
            out.append((codes, distinct[:used].copy()))
        return out

    found = [one for some in map_threads(number, split_evenly(len(parts))) for one in some]
    first = 0
    for codes, distinct in found:
        codes += np.int32(first)
        first += len(distinct)
    codes_of, keys_of = [codes for codes, _ in found], [distinct for _, distinct in found]
    return _concatenate(codes_of, np.int32), _concatenate(keys_of, np.uint64)


def _join_pairs(found: list[tuple[_Counted, Keys]]) -> tuple[Membership, Keys]:
    """Which items were shown for which queries, of partitions of items: a query may be in several."""
    table, items, members, queries, shown = KeyTable(), 0, [], [], []
    for pairs, keys in found:
        code = table.insert(keys)[0]
        n = len(pairs.sizes)
        members.append(np.repeat(np.arange(items, items + n, dtype=np.int32), pairs.sizes))
        queries.append(code[pairs.factor])
        shown.append(pairs.shown.astype(np.int64))
        items += n
    columns = _concatenate(queries, np.int32), _concatenate(members, np.int32), _concatenate(shown, np.int64)
    return Membership(len(table), *columns), table.keys()

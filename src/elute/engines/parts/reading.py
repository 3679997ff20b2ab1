"""Some parts of a folder, read as the counts of one log: what `CountsFiles` is for one counts folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util import locks
from elute._util.threads import map_threads
from elute.cells.chunks import CELLS_A_CHUNK, ITEMS_A_CHUNK
from elute.cells.counts import Cells, Membership, sum_by_item
from elute.cells.factors import to_json_value
from elute.cells.filters import Filters
from elute.door.tables import refusing
from elute.engines.counts_folder.cells import Sums
from elute.engines.counts_folder.layout import CELLS, QUERY
from elute.engines.parts.choosing import choose_parts
from elute.engines.parts.factors import merge_factors
from elute.engines.parts.hashing import to_plain
from elute.engines.parts.layout import FOLDER, Index
from elute.engines.parts.merging import Grouping, Merged, Named, Run, cut_places, join_merged, merge_runs
from elute.engines.parts.part import PartFiles, add_up
from elute.errors import EluteError
from elute.kernels.keys import KeyTable

ITEMS_A_RANGE = 1 << 16
"""Merged at a time where all are held: so few that they stay in the cache."""


class MergedCounts:
    """The counts of all parts of a folder, or of some. `streams`: they are read range by range, never all at once.
    What is read stays on disk until this is closed, whoever replaces it meanwhile."""

    def __init__(
        self,
        folder: Path,
        choose: Callable[[Index], Sequence[str]],
        units: bool,
        streams: bool,
        label: str | None = None,
    ) -> None:
        """`choose`: names of parts. `units`: items as the parts have them, each with its query. `label`: what the
        folder is called, where this is a copy."""
        self.folder, self._streams = folder, streams
        with refusing(folder / FOLDER, "count the log again"):
            self._lock = locks.share(folder / FOLDER)
        try:
            index = Index.read(folder)
            self.parts = [PartFiles.open(folder / FOLDER / name, index.unit_roles) for name in choose(index)]
        except BaseException:
            self.close()
            raise
        self.roles = index.unit_roles if units else index.roles
        self._by: Grouping = "item"
        if index.unit_roles != index.roles:
            self._by = "item and query" if units else "item with queries"
        self.about = add_up(label or str(folder), self.roles, [part.about for part in self.parts])
        self.filters = Filters.from_options(self.about["filters"])
        self.exact = all(part.exact for part in self.parts)
        self._last: tuple[int, Merged] | None = None

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def collision_bound(self) -> float:
        n = len(self._whole.run) if not self._streams else sum(len(group.run) for group in self._iterate_groups())
        return 0.0 if self.exact else n * (n - 1) / 2**65

    @property
    def queries(self) -> int:
        return len(self._query_codes)

    @property
    def factors(self) -> pa.Table:
        """The bias columns, and what was counted under each factor."""
        return self._factors[0]

    @cached_property
    def _factors(self) -> tuple[pa.Table, list[NDArray[np.int32]]]:
        return merge_factors([part.factors for part in self.parts], self.roles.bias)

    @cached_property
    def groups(self) -> int:
        """Ranges in which items are handed over."""
        if self._streams:
            cells = sum(int(part.about["cells"]) for part in self.parts)
            return max(1, -(-cells // CELLS_A_CHUNK))
        return max(1, -(-len(self._whole.run) // ITEMS_A_CHUNK))

    def cells(self) -> Cells:
        return self._whole.cells

    def cells_by_group(self) -> Iterator[Cells]:
        return (group.cells for group in self._iterate_groups())

    def items(self, columns: list[str], group: int | None = None) -> pa.Table:
        """The columns that name items, each read where it was first met."""
        merged = self._whole if group is None else self._group(group)
        return self._read_names(columns, merged.run, merged.row)

    def item_rows(self, group: int) -> pa.Table:
        """The columns that name items, and those that say what is counted of them."""
        table = self.items(list(self.roles.item), group)
        table = table.append_column(CELLS, pa.array(np.diff(self._group(group).cells.offsets)))
        return table.append_column(QUERY, pa.array(self.query_of_item(group))) if self._within else table

    def query_of_item(self, group: int | None = None) -> NDArray[np.int32]:
        merged = self._whole if group is None else self._group(group)
        return self._query_codes.find(merged.query)

    def members(self, first: int, shown: NDArray[np.int64], group: int | None = None) -> Membership:
        """Which items were shown for which query."""
        pairs = (self._whole if group is None else self._group(group)).pairs
        if pairs is None:
            raise EluteError(f"{self.folder}: its parts contradict each other; count them again")
        return Membership(self.queries, self._query_codes.find(pairs.query), pairs.item, pairs.impressions)

    def read_runs(self) -> list[tuple[int, Run]]:
        """The items of each part as it has them, with the part's number; factors are those of `factors`. On all
        cores."""
        codes = self._factors[1]

        def read(number: int) -> tuple[int, Run, Sums]:
            part, group = self._numbers[number]
            ids, cells, sums = self.parts[part].read_run(group)
            return part, Run(number, ids, cells._replace(factor=codes[part][cells.factor])), sums

        found = map_threads(read, range(len(self._numbers)))
        for number, part in enumerate(self.parts):
            part.require_all(Sums(*map(sum, zip(*(sums for at, _, sums in found if at == number), strict=True))))
        return [(part, run) for part, run, _ in found]

    def find_busiest_query(self) -> object:
        """Its name, found where one of its items is named."""
        shown = np.zeros(self.queries, np.int64)
        for some in self._iterate_groups():
            asked, times = some.query, sum_by_item(some.cells.offsets, some.cells.impressions)
            if some.pairs is not None:
                asked, times = some.pairs.query, some.pairs.impressions
            np.add.at(shown, self._query_codes.find(asked), times)
        wanted, column = self._query_codes.keys()[shown.argmax()], str(self.roles.query)
        for part in self.parts:
            for group in range(part.groups):
                rows = np.flatnonzero(part.ids(group).query == wanted)
                if len(rows):
                    return to_json_value(part.items([column], group)[column][int(rows[0])].as_py())
        return None

    @property
    def _within(self) -> bool:
        return self.roles.query is not None and self.roles.items_within_queries

    @cached_property
    def _amount(self) -> type[np.unsignedinteger[Any]]:
        return np.uint32 if int(self.factors["elute_impressions"].to_numpy().sum()) < 1 << 32 else np.uint64

    @cached_property
    def _numbers(self) -> list[tuple[int, int]]:
        """By number of a run: its part, and which of the part's it is."""
        return [(part, group) for part, files in enumerate(self.parts) for group in range(files.groups)]

    @cached_property
    def _query_codes(self) -> KeyTable:
        """Queries, numbered by their hashes."""
        table = KeyTable()
        if not self._streams:
            table.insert(self._whole.query if self._whole.pairs is None else self._whole.pairs.query)
            return table
        for part, group in self._numbers:
            table.insert(self.parts[part].ids(group).query)
        return table

    @cached_property
    def _whole(self) -> Merged:
        """All of it, range by range on all cores."""
        runs = [run for _, run in self.read_runs()]
        ranges = 1 if self.exact else max(1, sum(len(run.ids.item) for run in runs) // ITEMS_A_RANGE)
        edges = np.array(cut_places(ranges), np.uint64)
        cuts = [[0, *np.searchsorted(run.ids.place, edges).tolist(), len(run.ids.place)] for run in runs]

        def merge(at: int) -> Merged:
            own = [(run.cut(cut[at], cut[at + 1]), cut[at]) for run, cut in zip(runs, cuts, strict=True)]
            return self._merge(own)

        return join_merged(map_threads(merge, range(ranges)), self._amount)

    def _merge(self, runs: list[tuple[Run, int]]) -> Merged:
        check = self._require_same if self.exact else None
        return merge_runs(runs, self.factors.num_rows, self._amount, self._by, check)

    def _iterate_groups(self) -> Iterator[Merged]:
        return (self._group(number) for number in range(self.groups))

    def _group(self, number: int) -> Merged:
        if not self._streams:
            n = len(self._whole.run)
            return self._whole.cut(min(number * ITEMS_A_CHUNK, n), min((number + 1) * ITEMS_A_CHUNK, n))
        if self._last is None or self._last[0] != number:
            self._last = None
            self._last = number, self._merge_group(number)
        return self._last[1]

    def _merge_group(self, number: int) -> Merged:
        edges = [0, *cut_places(self.groups), 1 << 64]
        low, high = edges[number], edges[number + 1] - 1
        own = []
        for at, (part, group) in enumerate(self._numbers):
            files = self.parts[part]
            if not files.may_reach(group, low, high):
                continue
            ids = files.ids(group)
            begin = int(np.searchsorted(ids.place, np.uint64(low)))
            end = int(np.searchsorted(ids.place, np.uint64(high), side="right"))
            if begin < end:
                cells = files.read_group(group)[0]
                run = Run(at, ids, cells._replace(factor=self._factors[1][part][cells.factor]))
                own.append((run.cut(begin, end), begin))
        return self._merge(own)

    def _read_names(self, columns: list[str], run: NDArray[np.int32], row: NDArray[np.int32]) -> pa.Table:
        """Of these rows of these runs."""
        order = np.argsort(run, kind="stable")
        used, first = np.unique(run[order], return_index=True)
        found = [_decode(self.parts[0].items(columns, 0)).slice(0, 0)]
        for number, rows in zip(used.tolist(), np.split(order, first[1:]), strict=bool(len(used))):
            part, group = self._numbers[number]
            found.append(_decode(self.parts[part].items(columns, group)).take(pa.array(row[rows])))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_tables(found, promote_options="permissive").take(pa.array(back))

    def _require_same(self, one: Named, other: Named) -> None:
        """Items that are taken for one, where they are to be told apart by value."""
        columns = list(self.roles.item)
        both = (self._read_names(columns, *named) for named in (one, other))
        for mine, theirs in zip(*(table.columns for table in both), strict=True):
            if not to_plain(mine).equals(to_plain(theirs)):
                raise EluteError("two items share a 64-bit hash; append their parts to a new folder")


def choose_window(label: str, last: int | None, drop: str | None) -> Callable[[Index], list[str]]:
    """All parts of the folder, or those that `last` and `drop` leave."""

    def choose(index: Index) -> list[str]:
        chosen = choose_parts(index, last, drop)
        if chosen:
            return cover([part.name for part in chosen], index)
        asked = " that `last=` and `drop=` leave" if last is not None or drop is not None else ""
        raise EluteError(f"'{label}' has no part{asked}; add one with `elute.count` (`append=True`)")

    return choose


def cover(names: Sequence[str], index: Index) -> list[str]:
    """What to read for these parts: blocks in the place of those that they are made of, where all of them are asked
    for."""
    wanted, found = set(names), []
    for block in sorted(index.blocks, key=lambda block: -len(block.of)):
        if wanted.issuperset(block.of):
            wanted -= set(block.of)
            found.append(block.name)
    return found + [name for name in names if name in wanted]


def _decode(table: pa.Table) -> pa.Table:
    """Dictionaries of several files are not the same."""
    for place, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, table.column_names[place], column.cast(column.type.value_type))
    return table

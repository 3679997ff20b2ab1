"""Cells in files of a scratch folder, mapped into memory when they are read: the system may drop their pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Membership
from elute.cells.partitions import Partition
from elute.engines.counted import CountedCells
from elute.engines.pieces import Keys
from elute.errors import EluteError
from elute.kernels.keys import MAX_KEYS, KeyTable


class _Ends(NamedTuple):
    """How far the files reach after a partition."""

    items: int
    cells: int
    members: int


class CellFiles:
    """Partition after partition, each with all cells of its items."""

    def __init__(self, folder: Path, impressions: int) -> None:
        wide = np.dtype(np.uint32 if impressions < 1 << 32 else np.uint64)
        narrow, long, key = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)
        types: dict[str, np.dtype[Any]] = {
            "item": key, "size": narrow, "factor": narrow, "impressions": wide, "clicks": wide,
            "query": key, "member": narrow, "shown": long,
        }  # fmt: skip
        self._columns = {name: _GrowingArray(folder / f"cells.{name}", dtype) for name, dtype in types.items()}
        self._ends = [_Ends(0, 0, 0)]
        self._numbers: list[int] = []

    def add(self, number: int, counted: CountedCells) -> None:
        """One more partition; nothing happens where it has no items."""
        if not len(counted.items):
            return
        self._numbers.append(number)
        columns = self._columns
        columns["item"].add(counted.items)
        columns["size"].add(np.diff(counted.offsets))
        for name in ("factor", "impressions", "clicks"):
            columns[name].add(getattr(counted, name))
        if counted.membership is not None:
            columns["query"].add(counted.queries[counted.membership.query])
            columns["member"].add(counted.membership.item)
            columns["shown"].add(counted.membership.impressions)
        self._ends.append(_Ends(len(columns["item"]), len(columns["factor"]), len(columns["member"])))

    def partitions(self) -> Iterator[Partition]:
        """Those with items."""
        for number, begin, end in zip(self._numbers, self._ends, self._ends[1:], strict=False):
            yield Partition(number, self._read_cells(begin, end))

    def read_counted(self) -> Iterator[CountedCells]:
        """The same, with the queries that items were shown for."""
        for partition in self.partitions():
            query, member, shown = self.members(partition.number)
            keys, code = np.unique(query, return_inverse=True)
            membership = Membership(len(keys), code.astype(np.int32), member, shown) if len(keys) else None
            yield CountedCells(*partition.cells, membership, self.keys(partition.number), keys)

    def keys(self, number: int) -> Keys:
        """Of the items of a partition."""
        begin, end = self._bounds(number)
        return self._columns["item"].memory_map(begin.items, end.items)

    def members(self, number: int) -> tuple[Keys, NDArray[np.int32], NDArray[np.int64]]:
        """Which items of a partition were shown for which query, by its key, and how often."""
        begin, end = self._bounds(number)
        query, member, shown = (
            self._columns[name].memory_map(begin.members, end.members) for name in ("query", "member", "shown")
        )
        return query, member, shown

    def cells(self) -> Cells:
        """Of all partitions."""
        return self._read_cells(self._ends[0], self._ends[-1])

    def items(self) -> Keys:
        """Keys of all items."""
        return self._columns["item"].memory_map(0, self._ends[-1].items)

    def membership(self) -> Membership:
        """Which items of all were shown for which queries."""
        if self._ends[-1].items > MAX_KEYS:
            raise EluteError(f"{self._ends[-1].items:,} items are too many to hold at once")
        query, member, shown = (self._columns[name].memory_map() for name in ("query", "member", "shown"))
        first = np.repeat([end.items for end in self._ends[:-1]], np.diff([end.members for end in self._ends]))
        table = KeyTable()
        code = table.insert(query)[0]
        return Membership(len(table), code, (member + first).astype(np.int32), shown)

    def _bounds(self, number: int) -> tuple[_Ends, _Ends]:
        place = self._numbers.index(number)
        return self._ends[place], self._ends[place + 1]

    def _read_cells(self, begin: _Ends, end: _Ends) -> Cells:
        sizes = self._columns["size"].memory_map(begin.items, end.items)
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        named = (self._columns[name].memory_map(begin.cells, end.cells) for name in ("factor", "impressions", "clicks"))
        return Cells(offsets, *named)


class _GrowingArray:
    """An array that grows on disk."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path, self._dtype, self._length = path, dtype, 0
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self._length

    def add(self, values: NDArray[Any]) -> None:
        with self._path.open("ab") as file:
            values.astype(self._dtype, copy=False).tofile(file)
        self._length += len(values)

    def memory_map(self, begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """Copy on write, so that kernels see an array like any other."""
        length = (self._length if end is None else end) - begin
        if not length:
            return np.empty(0, self._dtype)
        offset = begin * self._dtype.itemsize
        return np.asarray(np.memmap(self._path, self._dtype, mode="c", offset=offset, shape=length))

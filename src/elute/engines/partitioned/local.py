"""Partitions of a log's cells in files on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeVar

import pyarrow as pa

from elute.cells.partitions import ItemColumns, Partition, Work
from elute.errors import EluteError

T = TypeVar("T")

DENSE = 5_000
"""200 MB for a matrix."""

_HELD = 3
"""Matrices at a time: the sum, the next, and their sum."""


class LocalPartitions:
    """One partition at a time is worked on. `names`: the item columns of a partition, by its number, in its order."""

    def __init__(
        self,
        factors: pa.Table,
        partitions: Callable[[], Iterator[Partition]],
        names: Callable[[int], pa.Table],
        memory: int,
    ) -> None:
        """`memory`: bytes for answers."""
        self.factors, self._partitions, self._names, self.memory = factors, partitions, names, memory

    @property
    def dense_limit(self) -> int:
        return min(DENSE, math.isqrt(self.memory // 8 // _HELD))

    def map_reduce(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        return reduce(merge, map(work, self._read()))

    def stream_items(self, work: Work[ItemColumns], schema: pa.Schema) -> Iterator[pa.Table]:
        for partition in self._read():
            table = self._names(partition.number)
            for name, values in work(partition).items():
                table = table.append_column(name, pa.array(values, schema.field(name).type))
            yield table

    def _read(self) -> Iterator[Partition]:
        try:
            yield from self._partitions()
        except FileNotFoundError as gone:
            raise EluteError("the log is closed and its cells are gone; save the fit before, or keep it open") from gone

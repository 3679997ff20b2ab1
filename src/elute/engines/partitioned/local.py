"""Shares of a log's cells in files on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeVar

import pyarrow as pa

from elute.cells.partitions import Columns, Share, Work

T = TypeVar("T")

DENSE = 5_000
"""200 MB for a matrix."""

_HELD = 3
"""Matrices at a time: the sum, the next, and their sum."""


class LocalShares:
    """One share at a time is worked on. `names`: the item columns of a share, by its number and in its order."""

    def __init__(
        self,
        factors: pa.Table,
        shares: Callable[[], Iterator[Share]],
        names: Callable[[int], pa.Table],
        memory: int,
    ) -> None:
        """`memory`: bytes for answers."""
        self.factors, self._shares, self._names, self._memory = factors, shares, names, memory

    @property
    def dense(self) -> int:
        return min(DENSE, math.isqrt(self._memory // 8 // _HELD))

    def merged(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        return reduce(merge, map(work, self._shares()))

    def items(self, work: Work[Columns], schema: pa.Schema) -> Iterator[pa.Table]:
        for share in self._shares():
            table = self._names(share.number)
            for name, values in work(share).items():
                table = table.append_column(name, pa.array(values, schema.field(name).type))
            yield table

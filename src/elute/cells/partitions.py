"""Cells that no machine holds at once: in partitions, each with all cells of its items.

What is asked of them is computed partition by partition, wherever a partition lies, and merged; only what is as long as
the factors travels. Items are answered for where they are, and come back as a stream of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Cells

T = TypeVar("T")


class Partition(NamedTuple):
    """Some items' cells; `number` tells partitions apart, the same each time they are gone through."""

    number: int
    cells: Cells


Work = Callable[[Partition], T]
ItemColumns = Mapping[str, NDArray[Any]]


@runtime_checkable
class Partitions(Protocol):
    """A log's cells in partitions. `work` must be picklable: it may run in another process, on another machine."""

    @property
    def factors(self) -> pa.Table:
        """The bias columns, one row a factor."""

    @property
    def dense_limit(self) -> int:
        """Up to how many factors an answer may hold a number for each two of them."""

    @property
    def memory(self) -> int:
        """Bytes that may be held on this machine for all factors."""

    def map_reduce(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """`work` on every partition; `merge` must be associative and commutative."""

    def stream_items(self, work: Work[ItemColumns], schema: pa.Schema) -> Iterator[pa.Table]:
        """The item columns, and the columns of `schema`, with a value of `work` for each item of its partition."""

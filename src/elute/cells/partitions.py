"""Cells that no machine holds at once: in shares, each with all cells of its items.

What is asked of them is computed share by share, wherever a share lies, and merged; only what is as long as the
factors travels. Items are answered for where they are, and come back as a stream of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Cells

T = TypeVar("T")


class Share(NamedTuple):
    """Some items' cells; `number` tells shares apart, the same each time they are gone through."""

    number: int
    cells: Cells


Work = Callable[[Share], T]
Columns = Mapping[str, NDArray[Any]]


class Partitions(Protocol):
    """A log's cells in shares. `work` must be picklable: it may run in another process, on another machine."""

    @property
    def factors(self) -> pa.Table:
        """The bias columns, one row a factor."""

    @property
    def dense(self) -> int:
        """Up to how many factors an answer may hold a number for each two of them."""

    def merged(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """`work` on every share; `merge` must be associative and commutative."""

    def items(self, work: Work[Columns], schema: pa.Schema) -> Iterator[pa.Table]:
        """The item columns, and the columns of `schema`, which `work` gives with a value for each item of its share."""

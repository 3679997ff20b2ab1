"""Partitions of a log's cells that stay on Spark's executors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from elute.cells.partitions import ItemColumns, Work
from elute.engines.spark import blocks
from elute.engines.spark.exchange import Exchange
from elute.engines.spark.frame import SparkFrame
from elute.errors import EluteError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")

ANSWERS = 16
"""More than this are merged on the executors first, so that the driver never sees more."""

DENSE = 1_000
MATRICES = 8 << 30
"""Bytes that may be shuffled in a round."""

_SPARK = {pa.int32(): "int", pa.int64(): "long", pa.float64(): "double"}


class SparkPartitions:
    """Blocks that Spark keeps, gone through in so many `tasks`. `names`: a frame with the items' columns under
    `elute_key`; None where blocks carry them. `columns`: the items' own."""

    def __init__(
        self,
        factors: pa.Table,
        log: SparkFrame,
        kept: DataFrame,
        tasks: int,
        items: int,
        names: DataFrame | None,
        columns: tuple[str, ...],
        exchange: Exchange,
        memory: int,
    ) -> None:
        """`memory`: bytes that this machine may give to it."""
        self.memory = memory
        self.factors, self._log, self._kept = factors, log, kept
        self._tasks, self._items = tasks, items
        self._names, self._columns, self._exchange = names, columns, exchange

    @property
    def dense_limit(self) -> int:
        return min(DENSE, math.isqrt(MATRICES // 8 // self._tasks))

    def map_reduce(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """A task goes through several partitions and gives one answer."""
        frame = self._log.map_partitions(
            self._kept.coalesce(self._tasks), blocks.map_reduce_blocks(work, merge), blocks.ANSWER
        )
        if self._tasks > ANSWERS:
            frame = self._log.map_partitions(frame.repartition(ANSWERS), blocks.reduce_answers(merge), blocks.ANSWER)
        answers: Iterator[T] = blocks.read_answers(self._log.to_arrow(frame).to_batches())
        return reduce(merge, answers)

    def stream_items(self, work: Work[ItemColumns], schema: pa.Schema) -> Iterator[pa.Table]:
        """In Spark's order; handed over in files, read here bit by bit."""
        own = ", ".join(f"{field.name} {_SPARK[field.type]}" for field in schema)
        if self._names is None:
            named = ", ".join(f"item{i} {self._log.types[name]}" for i, name in enumerate(self._columns))
            frame = self._log.map_partitions(self._kept, blocks.describe_items(work, schema), f"{named}, {own}")
        else:
            frame = self._log.map_partitions(self._kept, blocks.describe_items(work, schema), f"elute_key long, {own}")
            frame = self._names.join(frame, "elute_key").drop("elute_key")
        rows = 0
        for table in self._exchange.stream(frame, "relevance"):
            rows += table.num_rows
            yield table.rename_columns([*self._columns, *schema.names])
        if rows != self._items:
            raise EluteError("two items share a 64-bit hash; run again with exact item codes (`exact=True`)")

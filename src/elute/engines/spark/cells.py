"""A log's cells, counted in Spark and kept there: left on the executors, or handed over to this machine."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.cells.counts import Cells, Clustered, Counts, Membership
from elute.cells.survey import Survey
from elute.engines.counted import CountedCells, order_items
from elute.engines.counter import index_keys
from elute.engines.spark.blocks import CellBlock, unpack
from elute.engines.spark.exchange import Exchange
from elute.engines.spark.frame import SparkFrame, restore_unsigned, sql
from elute.engines.spark.partitions import SparkPartitions
from elute.engines.spark.worker import CountingJob
from elute.engines.sql import values
from elute.errors import EluteError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TASKS_A_CORE = 2


class SparkCells:
    """Blocks on the executors' disks; a lost partition is counted again from the log."""

    def __init__(
        self, log: SparkFrame, exchange: Exchange, blocks: DataFrame, job: CountingJob, survey: Survey, memory: int
    ) -> None:
        """`memory`: bytes that this machine may give to what comes back."""
        from pyspark import StorageLevel

        self._log, self._exchange, self._job, self._survey, self._memory = log, exchange, job, survey, memory
        self._kept = blocks.persist(StorageLevel.DISK_ONLY)

    def close(self) -> None:
        self._kept.unpersist()

    @cached_property
    def size(self) -> tuple[int, int]:
        """Items and cells."""
        from pyspark.sql import functions as f

        items, cells = self._log.first_row(self._kept.agg(f.sum("items"), f.sum("cells")))
        return items, cells

    def partitions(self) -> SparkPartitions:
        """For a fit that goes to the cells."""
        return SparkPartitions(
            self._survey.factors,
            self._log,
            self._kept,
            min(self._job.partitions, TASKS_A_CORE * self._log.cores),
            self.size[0],
            None if self._job.exact else self._select_names(),
            self._job.roles.item,
            self._exchange,
            self._memory,
        )

    def fetch_counts(self) -> Counts:
        """All cells on this machine."""
        table = self._exchange.fetch(self._kept, "cells")
        blocks = [block for batch in table.to_batches() for block in unpack(batch)]
        keys = np.concatenate([block.item for block in blocks])
        if self._job.exact:  # codes within a partition, which others have, too: their places instead
            keys = np.arange(len(keys), dtype=np.uint64)
        membership = None if self._job.roles.query is None else _concat_membership(blocks)
        counted = CountedCells(*_concat_cells(blocks), membership, keys)
        counted = order_items(counted, [(0, len(keys))])  # whatever Spark calls first
        return Counts(
            offsets=counted.offsets,
            factor=counted.factor,
            impressions=counted.impressions,
            clicks=counted.clicks,
            factors=self._survey.factors,
            membership=counted.membership,
            collision_bound=0.0 if self._job.exact else len(keys) * (len(keys) - 1) / 2**65,
            read_items=lambda: self._read_items(counted.items, blocks),
            read_clusters=lambda column: self._read_clusters(counted.items, blocks, column),
        )

    def _read_items(self, keys: NDArray[np.uint64], blocks: list[CellBlock]) -> pa.Table:
        """The items' columns in the order of their keys."""
        columns = list(self._job.roles.item)
        if self._job.exact:
            named = restore_unsigned(pa.concat_tables(block.names for block in blocks)).rename_columns(columns)
            return named.take(pa.array(keys))
        table = self._exchange.fetch(self._select_names(), "items")
        if table.num_rows != len(keys):
            raise EluteError("two items share a 64-bit hash; run again with exact item codes (`exact=True`)")
        order = np.argsort(index_keys(keys).find(table["elute_key"].to_numpy().view(np.uint64)))
        return table.drop_columns("elute_key").rename_columns(columns).take(pa.array(order))

    def _read_clusters(self, keys: NDArray[np.uint64], blocks: list[CellBlock], column: str) -> Clustered:
        """Cells by the values of a column."""
        from pyspark.sql import functions as f

        if column not in self._log.types:
            raise EluteError(f"{self._log.label} has no column '{column}' to cluster by")
        roles = replace(self._job.roles, session=column)
        own, types = self._log.shorten_roles(roles)
        shown = "count(1)" if own.impressions is None else f"sum({values.impressions_sql(own, types)})"
        items = {f"item{i}": f.col(name) for i, name in enumerate(own.item)} if self._job.exact else {}
        items = items or {"item": self._log.hash_ids(roles, own.item)}
        by = {**items, "factor": self._log.hash_ids(roles, own.bias), "cluster": f.col(str(own.session))}
        cells = self._log.usable_rows(roles).groupBy(*(key.alias(name) for name, key in by.items()))
        amounts = {"elute_shown": shown, "elute_clicked": f"sum({values.clicks_sql(own, types)})"}
        sums = (sql(f"({total})::BIGINT").alias(name) for name, total in amounts.items())
        table = self._exchange.fetch(cells.agg(*sums), "clusters")
        item: NDArray[np.integer]
        if self._job.exact:
            item = match(id_columns(table, list(items)), id_columns(self._read_items(keys, blocks), list(roles.item)))
        else:
            item = index_keys(keys).find(table["item"].to_numpy().view(np.uint64))
        factor = index_keys(self._survey.keys).find(table["factor"].to_numpy().view(np.uint64))
        return Clustered.from_table(table, "cluster", item, factor)

    def _select_names(self) -> DataFrame:
        """The items' columns and their keys."""
        own, _ = self._log.shorten_roles(self._job.roles)
        usable = self._log.usable_rows(self._job.roles)
        return usable.select(self._log.hash_ids(self._job.roles, own.item).alias("elute_key"), *own.item).distinct()


def _concat_cells(blocks: list[CellBlock]) -> Cells:
    sizes = np.concatenate([np.diff(block.cells.offsets) for block in blocks])
    arrays: list[NDArray[Any]] = [np.concatenate([block.cells[part] for block in blocks]) for part in (1, 2, 3)]
    return Cells(np.concatenate(([0], np.cumsum(sizes))), *arrays)


def _concat_membership(blocks: list[CellBlock]) -> Membership:
    """Queries are coded here: by value where they have one, else by key."""
    before = np.cumsum([0, *(len(block.item) for block in blocks)])
    member = np.concatenate([block.member + first for block, first in zip(blocks, before, strict=False)])
    shown = np.concatenate([block.shown for block in blocks])
    named = [chunk for block in blocks if block.queries is not None for chunk in block.queries.chunks]
    if named:
        encoded = pa.concat_arrays(named).dictionary_encode()
        queries, code = len(encoded.dictionary), encoded.indices.to_numpy()
    else:
        names, code = np.unique(np.concatenate([block.query for block in blocks]), return_inverse=True)
        queries = len(names)
    return Membership(queries, code.astype(np.int32), member.astype(np.int32), shown)

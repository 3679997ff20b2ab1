"""Spark: the log is read, hashed, shuffled and counted where it lives.

Rows are reduced to 64-bit hashes and shuffled once, by item. On every partition the kernels of the embedded engine
count cells and join factors, and give back at most |T| − 1 edges; the driver merges those forests. So the driver holds
O(partitions × |T|) numbers and never the items. What a check says about queries is summed by Spark from rows that are
one a query and tree of a partition's forest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.cells.filters import Filters
from elute.cells.rankable import Rankable
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.counting import LinkFactors, merge_forests
from elute.engines.source_state import State
from elute.engines.spark import worker
from elute.engines.spark.blocks import BLOCKS, pack_blocks
from elute.engines.spark.cells import SparkCells
from elute.engines.spark.exchange import Exchange
from elute.engines.spark.filtering import filter_frame
from elute.engines.spark.frame import SparkFrame, sql
from elute.engines.spark.id_hash import SparkIdHash
from elute.engines.spark.partitions import SparkPartitions
from elute.engines.spark.query_rows import count_queries, count_rankable_queries
from elute.engines.sql import values
from elute.engines.sql.factor_names import numbers_from_text
from elute.errors import EluteError
from elute.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


ROWS_A_PARTITION = 4_000_000
"""An executor needs about 100 bytes of memory for each."""

BYTES_A_CELL = 200
"""That a fit in memory takes, with the items' names."""

FORESTS = 64
"""More partitions than this are merged on the executors first, so that the driver never sees more."""


class SparkEngine:
    """A log in a Spark table, in files that Spark reads, or in a DataFrame."""

    def __init__(
        self, source: object, exact: bool = False, spill: str | Path | None = None, memory: int | None = None
    ) -> None:
        """`spill`: where cells are handed over, a folder that the executors and this machine see. `memory`: bytes
        that this machine may give to cells; more of them stay with the executors."""
        self._log = SparkFrame(source)
        self.label = self._log.label
        self._exact = exact
        self._exchange = Exchange(self._log, spill)
        self._totals: dict[str, int] = {}
        self._summary: DataFrame | None = None
        self._cells: SparkCells | None = None
        self._memory = memory or _half_of_memory()

    @property
    def exact(self) -> bool:
        return self._exact

    @property
    def columns(self) -> list[str]:
        return list(self._log.types)

    @property
    def state(self) -> list[State]:
        return []

    def close(self) -> None:
        """Free what elute cached in the session; the session is the user's."""
        self._log.close()
        if self._summary is not None:
            self._summary.unpersist()
        if self._cells is not None:
            self._cells.close()
        self._exchange.close()

    def filter(self, filters: Filters, roles: Roles) -> None:
        filter_frame(self._log, filters, roles)

    def find_problems(self, roles: Roles) -> list[str]:
        """Values of clicks and impressions that cannot be used; nulls of ids are counted in the same job."""
        from pyspark.sql import functions as f

        own, types = self._log.shorten_roles(roles)
        flaws, _ = values.list_flaws(own, types)
        back = {short: column for column, short in self._log.short_names(roles).items()}
        found = self._log.list_wrong_types(roles, self._exact) + values.list_nested_ids(roles, self._log.types)
        counted: list[Column] = [f.count(f.lit(1))]
        counted += [f.count(f.col(column)) for column in own.ids if column in types]
        for flaw in flaws:
            counted += [
                sql(f"count_if({flaw.condition})"),
                sql(f'min("{flaw.column}") FILTER (WHERE {flaw.condition})'),
            ]
        present = [column for column in own.ids if column in types]
        row = self._log.first_row(self._log.select_roles(roles).agg(*counted))
        self._totals = dict(zip(["", *(back[column] for column in present)], row[: len(present) + 1], strict=True))
        self._log.with_nulls = {column for column, filled in self._totals.items() if filled < row[0]}
        answers = row[len(present) + 1 :]
        for flaw, rows, example in zip(flaws, answers[::2], answers[1::2], strict=True):
            if rows:
                shown = "" if example is None else f", for instance {example!r}"
                says = flaw.message.replace(f"'{own.impressions}'", f"'{roles.impressions}'")
                found.append(f"column '{back[flaw.column]}' {says} in {rows:,} {'row' if rows == 1 else 'rows'}{shown}")
        return found

    def survey(self, roles: Roles) -> Survey:
        """Rows, nulls and factors; factors are told apart by value."""
        from pyspark.sql import functions as f

        rows = self._totals[""]
        if not rows:
            raise self._log.filters.refuse_empty(self.label)
        nulls = {column: rows - self._totals[column] for column in roles.ids if self._totals[column] < rows}
        own, types = self._log.shorten_roles(roles)
        shown = "count(1)" if own.impressions is None else f"sum({values.impressions_sql(own, types)})"
        grouped = self._log.usable_rows(roles).groupBy(*own.bias)
        table = self._log.to_arrow(
            grouped.agg(
                self._log.hash_ids(roles, own.bias).alias("key"),
                f.count(f.lit(1)).alias("rows"),
                sql(f"({shown})::BIGINT").alias("shown"),
                sql(f"sum({values.clicks_sql(own, types)})::BIGINT").alias("clicked"),
            )
        )
        if not table.num_rows:
            why = ", ".join(f"'{column}' is null in {n:,}" for column, n in nulls.items()) or "no impressions"
            raise EluteError(f"{self.label} has no usable row: of {rows:,} rows, {why}")
        if pc.count_distinct(table["key"]).as_py() < table.num_rows:
            self._log.hash = SparkIdHash()  # two factors share a hash: take another
            return self.survey(roles)
        back = {short: column for column, short in self._log.short_names(roles).items()}
        table = table.rename_columns([back.get(name, name) for name in table.column_names])
        table = table.sort_by([(column, "ascending") for column in roles.bias])
        table = numbers_from_text(table, roles.bias) if self._log.untyped else table
        usable = pc.sum(table["rows"]).as_py()
        unshown = self._log.complete_rows(roles).count() - usable if roles.impressions is not None else 0
        return Survey(
            rows=rows,
            usable=usable,
            unshown=unshown,
            nulls=nulls,
            factors=table.select(list(roles.bias)),
            rows_under=table["rows"].to_numpy(),
            keys=table["key"].to_numpy().view(np.uint64),
            impressions=table["shown"].to_numpy(),
            clicks=table["clicked"].to_numpy(),
            filtered=None if self._log.filters else 0,
        )

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """One shuffle; the driver merges forests and adds up totals by factor."""
        from pyspark.sql import functions as f

        progress("counting in Spark", 0, 0)
        rows = self._summarise(roles, survey)
        small = rows.where(f.col("kind") != worker.QUERY).drop("impressions", "query")
        if self._number_of_partitions(survey) > FORESTS:
            small = self._log.map_partitions(
                small.repartition(FORESTS), worker.combine(len(survey.keys)), worker.COMBINED
            )
        totals = worker.add_summaries(len(survey.keys), self._log.to_arrow(small).to_batches())
        queries, busiest = count_queries(self._log, self._query_rows()) if roles.query is not None else (None, 0)
        return totals.to_structure(queries, busiest, self._exact)

    def count_rankable(
        self, roles: Roles, survey: Survey, component: NDArray[np.int32], components: int, progress: Progress
    ) -> Rankable:
        """Queries are put together by Spark; the component of every factor is sent to it."""
        queries = self._query_rows()
        if components == 1:
            n = queries.select("key", "query").distinct().count()
            return Rankable(n, n, 1.0)
        progress("ranking queries in Spark", 0, 0)
        return count_rankable_queries(self._log, queries, component)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        """From the cells where they are counted, else as part of the structure: on Spark it costs the same shuffle."""
        if self._cells is None:
            return self.structure(roles, survey, progress).root
        return self._cells.partitions().map_reduce(LinkFactors(len(survey.keys)), merge_forests)

    def partitions(self, roles: Roles, survey: Survey, progress: Progress) -> SparkPartitions | None:
        """Left on the executors where they would not fit into this machine's memory."""
        progress("counting in Spark", 0, 0)
        counted = self._count_cells(roles, survey)
        return None if counted.size[1] * BYTES_A_CELL <= self._memory else counted.partitions()

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        """The cells, counted where the rows are, written as Parquet and read from there by one machine."""
        progress("counting in Spark", 0, 0)
        return self._count_cells(roles, survey).fetch_counts()

    def count_repeats_on_page(self, roles: Roles) -> int:
        """A page is a session and, where there is one, a query."""
        if roles.session is None:
            return 0
        own, _ = self._log.shorten_roles(roles)
        page = list(dict.fromkeys((str(own.session), *((own.query,) if own.query else ()), *own.item)))
        each = self._log.select_roles(roles).dropna(subset=page).groupBy(self._log.hash_ids(roles, page)).count()
        return int(self._log.first_row(each.agg(sql("coalesce(sum(`count` - 1), 0)")))[0])

    def find_busiest_query(self, roles: Roles) -> object:
        """The smallest of those with most impressions."""
        from pyspark.sql import functions as f

        own, types = self._log.shorten_roles(roles)
        usable = self._log.select_roles(roles).where(" AND ".join(f"`{column}` IS NOT NULL" for column in own.ids))
        top = usable.groupBy(str(own.query)).agg(sql(f"sum({values.impressions_sql(own, types)})").alias("n"))
        busiest = top.orderBy(f.desc("n"), f.asc(str(own.query))).limit(1)
        return self._log.to_arrow(busiest.select(str(own.query)))[0][0].as_py()

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        own, _ = self._log.shorten_roles(roles)
        keys = survey.keys.view(np.int64)[factors].tolist()
        key = self._log.hash_ids(roles, own.bias)
        some = (
            self._log.usable_rows(roles).select(key.alias("key"), *own.item).where(f.col("key").isin(keys)).distinct()
        )
        place = f.row_number().over(Window.partitionBy("key").orderBy(*own.item))
        table = self._log.to_arrow(some.withColumn("place", place).where(f.col("place") <= each))
        table = table.sort_by([("key", "ascending"), ("place", "ascending")])
        names = table.select(list(own.item)).rename_columns(list(roles.item))
        return {factor: names.filter(pc.equal(table["key"], key)) for factor, key in zip(factors, keys, strict=True)}

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        return self._log.compute_means(columns, value)

    def _count_cells(self, roles: Roles, survey: Survey) -> SparkCells:
        if self._cells is None:
            job = self._make_job(roles, survey)
            rows = self._map_items(job, pack_blocks(job), BLOCKS)
            self._cells = SparkCells(self._log, self._exchange, rows, job, survey, self._memory)
        return self._cells

    def _summarise(self, roles: Roles, survey: Survey) -> DataFrame:
        """Kept on disk between the questions about it; a lost partition is counted again from the log."""
        if self._summary is None:
            from pyspark import StorageLevel

            job = self._make_job(roles, survey)
            kind = self._log.types[str(roles.query)] if job.exact and roles.query is not None else "string"
            rows = self._map_items(job, worker.summarise(job), worker.summary_schema(kind))
            self._summary = rows.persist(StorageLevel.DISK_ONLY)
        return self._summary

    def _map_items(
        self, job: worker.CountingJob, work: Callable[[worker.Batches], worker.Batches], schema: str
    ) -> DataFrame:
        """`work` on partitions that hold all rows of their items."""
        rows = self._log.shuffle_by_item(job.roles, job.partitions, self._exact)
        return self._log.map_partitions(rows, work, schema)

    def _query_rows(self) -> DataFrame:
        from pyspark.sql import functions as f

        if self._summary is None:
            raise EluteError(f"{self.label} has not been counted")
        return self._summary.where(f.col("kind") == worker.QUERY)

    def _make_job(self, roles: Roles, survey: Survey) -> worker.CountingJob:
        return worker.CountingJob(
            roles=roles,
            factors=survey.keys,
            rows=survey.usable,
            impressions=int(survey.impressions.sum()),
            partitions=self._number_of_partitions(survey),
            exact=len(roles.item) if self._exact else 0,
            query=self._log.arrow_type(roles.query) if self._exact and roles.query is not None else pa.string(),
        )

    def _number_of_partitions(self, survey: Survey) -> int:
        """As many for each core, so that none is idle at the end."""
        cores = self._log.cores
        return cores * max(1, -(-survey.usable // (ROWS_A_PARTITION * cores)))


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

"""A log in Spark as elute addresses it: the columns that play a role, under short names that need no quoting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.engines.spark.errors import translate_errors
from elute.engines.spark.id_hash import SparkIdHash, place_columns
from elute.engines.spark.source import open_frame
from elute.engines.spark.worker import Batches
from elute.engines.sql import values
from elute.errors import EluteError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TYPES = {"int": "INTEGER", "string": "VARCHAR", "void": '"NULL"'}
"""Spark's names of types that the embedded engine calls otherwise."""


class SparkFrame:
    """The log's DataFrame, and running what is asked of it."""

    def __init__(self, source: object) -> None:
        self.frame, self.label, self.untyped = open_frame(source)
        self.filters = Filters()
        """What the frame has passed."""
        self.held: DataFrame | None = None
        """What filters keep in the session meanwhile."""
        self.hash = SparkIdHash()
        self._named: dict[str, str] = {}
        """The columns that go by short names."""
        self.with_nulls: set[str] | None = None
        """Columns that hold nulls, once they have been counted."""
        self.types = {field.name: field.dataType.simpleString() for field in self.frame.schema.fields}

    def close(self) -> None:
        """Free what was held; the session is the user's."""
        if self.held is not None:
            self.held.unpersist()

    @property
    def cores(self) -> int:
        """What Spark takes for the number of cores it works on."""
        return int(self.frame.sparkSession.sparkContext.defaultParallelism)

    def select_roles(self, roles: Roles) -> DataFrame:
        """The columns that play a role, under short names that need no quoting. Of ids, 0.0 and -0.0 are one, and so
        are all that are no number, as in the embedded engine."""
        chosen = []
        for column, name in self.short_names(roles).items():
            same = column in roles.ids and self.types[column] in ("float", "double")
            chosen.append((_merge_equal(self.column(column)) if same else self.column(column)).alias(name))
        return self.frame.select(*chosen)

    def hash_ids(self, roles: Roles, own: Iterable[str]) -> Column:
        """The key of these columns, which go by their short names."""
        return self.hash.hash_columns(own, {name: self.types[c] for c, name in self.short_names(roles).items()})

    def complete_rows(self, roles: Roles) -> DataFrame:
        """Rows without a null id; only columns that have nulls are looked at, since each costs a scan."""
        short = self.short_names(roles)
        lacking = [short[column] for column in roles.ids if self.with_nulls is None or column in self.with_nulls]
        return self.select_roles(roles).dropna(subset=lacking) if lacking else self.select_roles(roles)

    def usable_rows(self, roles: Roles) -> DataFrame:
        """The rows that count: no null id, at least one impression."""
        own, types = self.shorten_roles(roles)
        complete = self.complete_rows(roles)
        return complete if own.impressions is None else complete.where(sql(f"{values.impressions_sql(own, types)} > 0"))

    def shuffle_by_item(self, roles: Roles, partitions: int, exact: bool) -> DataFrame:
        """Usable rows as keys and counts, all rows of an item in one partition. `exact`: items and queries by value,
        not by hash."""
        from pyspark.sql import functions as f

        own, types = self.shorten_roles(roles)
        chosen: list[Column] = [self.hash_ids(roles, own.item).alias("item")]
        if exact:
            chosen = [f.col(column).alias(f"item{i}") for i, column in enumerate(own.item)]
        chosen.append(self.hash_ids(roles, own.bias).alias("factor"))
        if own.query is not None:
            chosen.append((f.col(own.query) if exact else self.hash_ids(roles, (own.query,))).alias("query"))
        width = "TINYINT" if own.impressions is None else "BIGINT"
        chosen.append(sql(f"({values.clicks_sql(own, types)})::{width}").alias("clicks"))
        if own.impressions is not None:
            chosen.append(sql(values.impressions_sql(own, types)).alias("impressions"))
        chosen.append(place_columns(own.item).alias("place"))
        return self.usable_rows(roles).select(*chosen).repartition(partitions, "place").drop("place")

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        """Text that is no number counts as missing."""
        from pyspark.sql import functions as f

        number = values.number_sql("value", duckdb_type(self.types[value]))
        if number is None:
            raise EluteError(f"column '{value}' holds {self.types[value]} values where numbers are expected")
        short = {column: f"c{i}" for i, column in enumerate(columns)}
        chosen = [self.column(column).alias(name) for column, name in short.items()]
        frame = self.frame.select(*chosen, self.column(value).alias("value")).groupBy(*short.values())
        table = self.to_arrow(frame.agg(f.avg(sql(number)).cast("double").alias("value")))
        return table.rename_columns([*columns, value])

    def short_names(self, roles: Roles) -> dict[str, str]:
        short = {column: f"c{i}" for i, column in enumerate(roles.columns) if column in self.types}
        self._named = {name: column for column, name in short.items()}
        return short

    def _translate_errors(self) -> AbstractContextManager[None]:
        """What Spark says of the log, with the columns under their own names."""
        return translate_errors(f"cannot read {self.label}", self._named)

    def shorten_roles(self, roles: Roles) -> tuple[Roles, dict[str, str]]:
        """The roles under short names, and the short columns' types in the embedded engine's words."""
        short = self.short_names(roles)
        own = replace(
            roles,
            item=tuple(short.get(column, column) for column in roles.item),
            bias=tuple(short.get(column, column) for column in roles.bias),
            **{
                part: short.get(str(getattr(roles, part)), getattr(roles, part))
                for part in ("query", "click", "impressions", "session")
            },
        )
        return own, {name: duckdb_type(self.types[column]) for column, name in short.items()}

    def arrow_type(self, column: str) -> pa.DataType:
        from pyspark.sql.pandas.types import to_arrow_type

        return to_arrow_type(self.frame.schema[column].dataType)

    def list_wrong_types(self, roles: Roles, exact: bool) -> list[str]:
        """Sentences about columns whose type alone is wrong."""
        kinds = {column: duckdb_type(kind) for column, kind in self.types.items()}
        nested = [c for c in roles.ids if exact and self.types.get(c, "").startswith(("array", "struct", "map"))]
        return [
            *values.list_flaws(roles, kinds)[1],
            *(
                f"column '{c}' holds {self.types[c]} values, for which there is no `exact=True` in Spark"
                for c in nested
            ),
        ]

    def column(self, column: str) -> Column:
        from pyspark.sql import functions as f

        return f.col("`" + column.replace("`", "``") + "`")

    def map_partitions(self, frame: DataFrame, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
        """A frame whose partitions are worked through on the executors."""
        with self._translate_errors():
            return frame.mapInArrow(work, schema)

    def create_frame(self, columns: pa.Table) -> DataFrame:
        """A small table for the executors."""
        with translate_errors("cannot send a table to Spark"):
            return self.frame.sparkSession.createDataFrame(columns)

    def to_arrow(self, frame: DataFrame) -> pa.Table:
        with self._translate_errors():
            return restore_unsigned(frame.toArrow())

    def first_row(self, frame: DataFrame) -> Any:
        with self._translate_errors():
            return frame.collect()[0]


def _merge_equal(column: Column) -> Column:
    from pyspark.sql import functions as f

    return f.nanvl(column, f.lit(math.nan)) + f.lit(0.0)


def sql(expression: str) -> Column:
    """An expression of `elute.engines.sql.values`, whose names are short and need no quotes."""
    from pyspark.sql import functions as f

    return f.expr(expression.replace('"', "`"))


def duckdb_type(spark: str) -> str:
    return _TYPES.get(spark, spark.upper())


def restore_unsigned(table: pa.Table) -> pa.Table:
    """Parquet's unsigned 64-bit integers, which Spark reads as decimals of 20 digits."""
    for number, field in enumerate(table.schema):
        if field.type == pa.decimal128(20, 0):
            table = table.set_column(number, field.name, table[field.name].cast(pa.uint64()))
    return table

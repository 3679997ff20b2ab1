"""CSV and NDJSON files as Spark reads them: so that it finds the same rows in them as the embedded engine, or refuses
them as that does. Where the driver sees the files, their headers are read here."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elute.engines.sql.delimited import read_header

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STRICT: dict[str, Any] = {"mode": "FAILFAST", "columnPruning": False}
"""A row with too few or too many values is an error, also where they are of columns that play no role."""


def read_csv(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Columns matched by name, every value as text."""
    options = {**_STRICT, "header": True, "escape": '"', "multiLine": True}
    files = _find_local(paths)
    if not files:  # somewhere that only Spark can read
        separator = "\t" if paths[0].removesuffix(".gz").endswith(".tsv") else ","
        return spark.read.options(**options, sep=separator).csv(list(paths))
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        groups.setdefault(read_header(file), []).append(_literal(file))
    frames = [
        spark.read.options(**options, sep=separator, enforceSchema=True).schema(_all_text(columns)).csv(group)
        for (separator, *columns), group in groups.items()
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def read_ndjson(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """A line that is no JSON is an error."""
    return spark.read.option("mode", "FAILFAST").json(list(paths))


def _find_local(paths: Sequence[str]) -> list[str]:
    """The files that paths and patterns stand for on this machine."""
    found: list[str] = []
    for path in paths:
        found += [path] if Path(path).is_file() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
    return found


def _literal(file: str) -> str:
    """As Hadoop reads it: a name, not a pattern."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in file)


def _all_text(columns: Sequence[str]) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(column, StringType()) for column in columns])

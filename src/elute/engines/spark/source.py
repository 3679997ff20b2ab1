"""From what a user names (a table, paths, a DataFrame) to a Spark DataFrame, in the session there is."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from elute._util.urls import hide_secrets, is_postgres
from elute.engines.duckdb.files import FORMATS
from elute.errors import EluteError, MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"}
"""Settings of a session that elute starts itself; one that is there already stays as it is."""


def get_session() -> SparkSession:
    """The active session, or a new one set up by the user's own Spark configuration."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("`engine='spark'`", "PySpark", "spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("elute")
    for setting, value in _QUIET.items():
        builder = builder.config(setting, value)
    with translate_errors("cannot start Spark"):
        started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def open_frame(source: object) -> tuple[DataFrame, str, bool]:
    """The log, what messages call it, and whether its columns are all text."""
    spark = get_session()
    if not isinstance(source, str | Path | Sequence):
        if not hasattr(source, "sparkSession"):
            raise EluteError(
                f"cannot read {type(source).__name__} with Spark; pass a table's name, paths or a DataFrame"
            )
        return cast("DataFrame", source), "the DataFrame", False
    paths = [str(path) for path in ([source] if isinstance(source, str | Path) else source)]
    label = hide_secrets(paths[0]) if len(paths) == 1 else f"{hide_secrets(paths[0])} and {len(paths) - 1} more"
    if any(is_postgres(path) or path.startswith("duckdb://") for path in paths):
        raise EluteError(f"Spark cannot read {hide_secrets(paths[0])}; leave out `engine='spark'`")
    kind = _detect_format(paths)
    with translate_errors(f"cannot read {label}"):
        if kind == "parquet":
            return spark.read.option("mergeSchema", "true").parquet(*paths), label, False
        if kind == "csv":
            separator = "\t" if paths[0].removesuffix(".gz").endswith(".tsv") else ","
            options: dict[str, Any] = {"header": True, "sep": separator, "escape": '"', "multiLine": True}
            return spark.read.options(**options).csv(paths), label, True
        if kind == "ndjson":
            return spark.read.json(paths), label, False
        if len(paths) > 1:
            raise EluteError(f"{label}: pass one Spark table at a time")
        return spark.table(paths[0]), f"table {label}", False


_RAISED = re.compile(r"(?!java\.|org\.)[\w.]+(Error|Exception): ")


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn what Spark says into one line, and keep what it says of pandas, which elute does not use with it, quiet."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            yield
    except (PySparkException, Py4JError, OSError) as error:
        raise EluteError(f"{what}: {_one_line(error)}") from error


def _detect_format(paths: Sequence[str]) -> str:
    """By the paths' endings; a folder is taken for Parquet, and what is neither file nor folder for a table."""
    kinds = {_detect_path_format(path) for path in paths}
    if len(kinds) > 1:
        raise EluteError(f"mixed formats ({', '.join(sorted(kinds))}); pass one at a time")
    return kinds.pop()


def _detect_path_format(path: str) -> str:
    for kind, suffixes in FORMATS.items():
        if path.lower().endswith(suffixes):
            return kind
    return "parquet" if "/" in path or Path(path).is_dir() else "table"


def _one_line(error: Exception) -> str:
    """What a worker's Python raised, or the last cause that Java names, or how the message begins."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line.removeprefix("elute.errors.EluteError: ") for line in lines if _RAISED.match(line)]
    if raised and "'elute'" in raised[-1]:
        return f"{raised[-1]}: install elute for the executors' Python, or set PYSPARK_PYTHON to one that has it"
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    line = (raised[-1:] or causes[-1:] or lines or [type(error).__name__])[0]
    return line if len(line) <= 240 else line[:237] + "…"

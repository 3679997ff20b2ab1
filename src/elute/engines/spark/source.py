"""From what a user names (a table, paths, a DataFrame) to a Spark DataFrame, in the session there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from elute._util.paths import require_name
from elute._util.urls import hide_secrets, is_postgres
from elute.engines.duckdb.files import FORMATS
from elute.engines.duckdb.local_files import hidden_column
from elute.engines.spark.errors import translate_errors
from elute.engines.spark.session import get_session
from elute.engines.spark.text_files import read_csv, read_ndjson
from elute.errors import EluteError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    if any(is_postgres(path) or path.startswith(("duckdb://", "adbc://")) for path in paths):
        raise EluteError(f"Spark cannot read {hide_secrets(paths[0])}; leave out `engine='spark'`")
    kind = _detect_format(paths)
    files = [_escape(path) for path in paths]
    with translate_errors(f"cannot read {label}"):
        if kind == "parquet":
            return _check_folders(spark.read.option("mergeSchema", "true").parquet(*files), label), label, False
        if kind == "csv":
            return read_csv(spark, paths), label, True
        if kind == "ndjson":
            return _check_folders(read_ndjson(spark, files), label), label, False
        if len(paths) > 1:
            raise EluteError(f"{label}: pass one Spark table at a time")
        return spark.table(paths[0]), f"table {label}", False


def _escape(path: str) -> str:
    """A name, which Spark takes for a pattern, as it is where a file or folder has it."""
    if "://" in path or not Path(path).exists():
        return path
    require_name(path)
    return re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", path)


def _check_folders(frame: DataFrame, label: str) -> DataFrame:
    """Refuse files with a column that the name of a folder (`date=2020`) hides: Spark reads the folder's."""
    read = getattr(frame, "_jdf", None)  # a frame of Spark Connect has none
    if read is not None:
        hidden = read.queryExecution().analyzed().relation().overlappedPartCols()
        if hidden.nonEmpty():
            raise EluteError(hidden_column(label, hidden.keys().head()))
    return frame


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

"""From what a user names (a table, paths, a DataFrame) to a Spark DataFrame, in the session there is."""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from elute._util import scratch
from elute._util.paths import require_name
from elute._util.urls import hide_secrets, is_postgres
from elute.engines.duckdb.files import FORMATS
from elute.engines.duckdb.local_files import hidden_column
from elute.engines.spark.text_files import read_csv, read_ndjson
from elute.errors import EluteError, MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false", "spark.log.level": "OFF"}
"""Settings of a session that elute starts itself; one that is there already stays as it is."""

_HOME = "127.0.0.1"
_ADDRESS = ("spark.driver.host", "spark.driver.bindAddress")
_FOLDER = "spark.local.dir"


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
    with translate_errors("cannot start Spark"):
        for setting, value in {**_QUIET, **_keep_private()}.items():
            builder = builder.config(setting, value)
        before = signal.getsignal(signal.SIGINT)
        started = builder.getOrCreate()
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)  # Spark's own asks Spark to stop in the middle of another question to it
    return started


def _keep_private() -> dict[str, str]:
    """Where Spark runs on this machine alone, it listens to this machine alone, and what it puts on disk lies in a
    folder that nobody else may open. What the user has set stays."""
    from pyspark import SparkConf, SparkContext

    if "SPARK_REMOTE" in os.environ:
        return {}
    SparkContext._ensure_initialized()  # reads the user's configuration
    set_already = dict(SparkConf().getAll())
    if not set_already.get("spark.master", "local").startswith("local"):
        return {}
    own = {} if "SPARK_LOCAL_IP" in os.environ else dict.fromkeys(_ADDRESS, _HOME)
    if _FOLDER not in set_already and "SPARK_LOCAL_DIRS" not in os.environ:
        folder, remove = scratch.make_folder(None)
        atexit.register(remove)
        own[_FOLDER] = str(folder)
    return {setting: value for setting, value in own.items() if setting not in set_already}


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


_LOGGERS = ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""What they say of an error, or of Ctrl-C, at length, is said here in one line."""

_RAISED = re.compile(r"(?!java\.|org\.)[\w.]+(Error|Exception): ")


@contextmanager
def translate_errors(what: str, named: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn what Spark says into one line, and keep what it says of pandas, which elute does not use with it, quiet.
    `named`: columns by the names that Spark has for them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            yield
    except KeyboardInterrupt:
        _stop_jobs()
        raise
    except (PySparkException, Py4JError, OSError) as error:
        said = _COLUMN.sub(lambda found: f"'{(named or {}).get(found[1], found[1])}'", _one_line(error))
        raise EluteError(f"{what}: {said}") from error


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """It logs by the root's name, too."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _stop_jobs() -> None:
    """What was asked of Spark when Ctrl-C was pressed."""
    from pyspark import SparkContext

    running = SparkContext._active_spark_context
    if running is not None:
        with suppress(Exception):  # it may be gone by now
            running.cancelAllJobs()


_COLUMN = re.compile(r"`(c\d+)`")
_CODES = re.compile(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+$")
_KNOWN = {
    "TIMESTAMP(NANOS": "it has times in nanoseconds, which Spark does not read; store them in microseconds, or leave "
    "out `engine='spark'`",
    "COLUMN_ALREADY_EXISTS": "two of its columns differ in capitals only; rename one",
    "MALFORMED_RECORD_IN_PARSING": "a row has too few values, or too many, or is no JSON; mend it",
}
"""What Spark says in many words, and without what to do."""


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
    known = next((says for sign, says in _KNOWN.items() if sign in str(error)), None)
    if known is not None:
        return known
    line = _CODES.sub("", line)
    return line if len(line) <= 240 else line[:237] + "…"

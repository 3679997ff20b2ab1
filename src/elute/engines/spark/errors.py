"""What Spark says, in one line."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from elute.errors import EluteError

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

"""A DataFrame's rows that pass the filters. The filter becomes part of the frame, so that whatever reads it reads these
rows and no others, and Spark leaves out files and partitions that `where` excludes."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import duckdb

from elute.cells.filters import Filters, choose_position, describe_text
from elute.cells.roles import Roles
from elute.engines.duckdb.connection import connect
from elute.engines.duckdb.expression import Expression, parse, try_on_rows
from elute.engines.spark.errors import translate_errors
from elute.engines.spark.frame import SparkFrame, duckdb_type, sql
from elute.engines.sql import quoting, values
from elute.errors import EluteError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FUNCTIONS = frozenset(
    ("+", "-", "*", "/", "%", "||", "~~", "!~~", "abs", "ceil", "floor", "length", "lower", "ltrim", "round", "rtrim",
     "starts_with", "trim", "upper")
)  # fmt: skip
"""Those that mean the same to Spark and to DuckDB."""

_OPERATORS = frozenset(
    ("COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE", "OPERATOR_IS_NOT_NULL", "OPERATOR_IS_NULL", "OPERATOR_NOT")
)

_SPELLED = {"~~": "LIKE", "!~~": "NOT LIKE", "starts_with": "startswith", "VARCHAR": "STRING"}
"""What Spark calls otherwise."""

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|!?~~|\bstarts_with(?=\()|(?<=\bAS )VARCHAR\b""")


def filter_frame(log: SparkFrame, filters: Filters, roles: Roles) -> None:
    """Make the log's frame that of the rows that pass."""
    from pyspark.sql import functions as f

    log.filters = filters
    if filters.where is not None:
        where = parse(filters.where, list(log.types), log.label)
        _check_columns(where, log)
        condition = spell_for_spark(where, log.label)
        with translate_errors(f"{log.label}: `where=`"):
            log.frame = log.frame.where(f.expr(condition))
    if filters.max_position is not None:
        column = choose_position(roles.bias, lambda bias: _find_flaw(log, bias))
        log.frame = log.frame.where(_to_number(log, column) + f" <= {filters.max_position}")
    if filters.min_factor_impressions is not None:
        log.held = _find_kept_factors(log, roles, filters.min_factor_impressions).persist()
        same = [log.column(column) == f.col(f"elute_kept{number}") for number, column in enumerate(roles.bias)]
        log.frame = log.frame.join(f.broadcast(log.held), same, "left_semi")


def spell_for_spark(where: Expression, label: str) -> str:
    """The same in Spark's words: names in backticks, text with Spark's escapes. What Spark might take otherwise than
    DuckDB is refused."""
    strange = sorted((where.functions - _FUNCTIONS) | (where.operators - _OPERATORS))
    if not strange and "\\" in where.plain and where.functions & {"~~", "!~~"}:
        strange = ["LIKE with a backslash"]
    if strange:
        problem = f"{', '.join(strange)} may mean something else to Spark"
        raise EluteError(f"{label}: `where=`: {problem}; make it a column of the table, and name that")
    return _TOKEN.sub(lambda found: _spell_token(found[0]), where.plain)


def _spell_token(token: str) -> str:
    if token[0] == '"':
        return _quote(token[1:-1].replace('""', '"'))
    if token[0] == "'":
        text = token[1:-1].replace("''", "'").replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    return _SPELLED[token]


def _quote(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _check_columns(where: Expression, log: SparkFrame) -> None:
    """Types go together as DuckDB has it: Spark would compare text with numbers, one way or another."""
    kinds = {column: duckdb_type(log.types[column]) for column in where.columns}
    with closing(connect()) as connection:
        for column, kind in kinds.items():
            try:
                connection.execute(f"SELECT NULL::{kind}")
            except duckdb.Error:
                held = f"column '{column}' holds {log.types[column]} values"
                raise EluteError(f"{log.label}: `where=`: {held}, which elute cannot compare; name another") from None
        typed = ", ".join(f"NULL::{kind} AS {quoting.name(column)}" for column, kind in kinds.items())
        try_on_rows(connection, where, f"(SELECT {typed or '1'})", log.label)


def _find_flaw(log: SparkFrame, column: str) -> str | None:
    """Why a column does not hold positions, by its type; text must be numbers throughout."""
    kind = duckdb_type(log.types[column])
    if kind != "VARCHAR":
        numbers = kind != "BOOLEAN" and values.number_sql(column, kind) is not None
        return None if numbers else f"holds {log.types[column]} values"
    failed = f"{_quote(column)} IS NOT NULL AND {_to_number(log, column)} IS NULL"
    counted = (sql(f"count_if({failed})"), sql(f"min({_quote(column)}) FILTER (WHERE {failed})"))
    rows, example = log.first_row(log.frame.agg(*counted))
    return describe_text(rows, example)


def _to_number(log: SparkFrame, column: str) -> str:
    return f"try_cast({_quote(column)} AS DOUBLE)" if log.types[column] == "string" else _quote(column)


def _find_kept_factors(log: SparkFrame, roles: Roles, least: int) -> DataFrame:
    """The bias columns as `elute_kept0`, …; impressions are counted as a survey counts them."""
    from pyspark.sql import functions as f

    own, types = log.shorten_roles(roles)
    _, wrong_types = values.list_flaws(roles, {c: duckdb_type(kind) for c, kind in log.types.items()})
    if wrong_types:
        raise EluteError(f"{log.label}: {'; '.join(wrong_types)}")
    grouped = log.usable_rows(roles).groupBy(*own.bias)
    enough = grouped.agg(sql(f"sum({values.impressions_sql(own, types)})").alias("n")).where(f.col("n") >= least)
    return enough.select(*(f.col(column).alias(f"elute_kept{number}") for number, column in enumerate(own.bias)))

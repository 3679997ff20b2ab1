"""`where`: an SQL expression of the user's, taken apart before anything runs it.

DuckDB parses it and hands over its tree. It must be one expression, made of parts whose value depends on the row and
on nothing else: no subquery, no other table, no file, no function that draws or reads a clock. For a log is gone
through several times, and each time the same rows must pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import duckdb

from elute.cells.roles import describe_missing
from elute.engines.duckdb.connection import connect
from elute.errors import EluteError

_ALLOWED = frozenset(
    ("BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "OPERATOR", "TYPE")
)
"""Kinds of parts."""

_WORDS = {
    "LAMBDA": "a lambda",
    "PARAMETER": "a parameter",
    "STAR": "'*' or COLUMNS",
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
}

_MACROS = frozenset(("if", "nullif", "split_part"))
"""DuckDB has these as shorthands for expressions. Others of its shorthands ask for the time, or for its own state."""

_EXAMPLE = "write one SQL condition on a row, such as position <= 10"


@dataclass(frozen=True)
class Expression:
    """An expression that may be run on a log's rows."""

    sql: str
    """In parentheses."""
    plain: str
    """As DuckDB writes it: text in single quotes, odd names in double quotes, no comments."""
    columns: tuple[str, ...]
    """Columns of the log that it reads, each once."""
    functions: frozenset[str]
    """Functions and infix operators, in small letters."""
    operators: frozenset[str]
    """DuckDB's names of its other operators, such as COMPARE_IN."""


def parse(where: str, existing: Sequence[str], label: str) -> Expression:
    """The expression over these columns; refuses everything else in one line that names the log."""

    def refuse(problem: str, instead: str = _EXAMPLE) -> EluteError:
        return EluteError(f"{label}: `where=`: {problem}; {instead}")

    with closing(connect()) as connection:
        try:
            tree = _parse_expression(connection, where)
            parts = list(_iterate_parts(tree))
            for part in parts:
                _check_part(connection, part)
            plain = _write(connection, tree)
        except _NoExpressionError as error:
            raise refuse(str(error)) from None
        except RecursionError:
            raise refuse("this is nested too deeply") from None
    known = {column.lower(): column for column in existing} | {column: column for column in existing}
    names = dict.fromkeys(str(part["column_names"][0]) for part in parts if part["class"] == "COLUMN_REF")
    missing = [describe_missing(name, existing) for name in names if _find(name, known) is None]
    if missing:
        raise refuse("; ".join(missing), "name a column of the log; text goes into single quotes")
    columns = tuple(dict.fromkeys(str(_find(name, known)) for name in names))
    functions = frozenset(str(part["function_name"]).lower() for part in parts if part["class"] == "FUNCTION")
    operators = frozenset(str(part["type"]) for part in parts if part["class"] == "OPERATOR")
    return Expression(f"({where}\n)", plain, columns, functions, operators)


class _NoExpressionError(Exception):
    """What is wrong with the text."""


def _find(name: str, known: dict[str, str]) -> str | None:
    """SQL does not tell capitals from small letters."""
    return known.get(name, known.get(name.lower()))


def _parse_expression(connection: duckdb.DuckDBPyConnection, where: str) -> dict[str, Any]:
    """A statement that selects it. It must stand alone and mean the same in parentheses, in which it is run."""
    if not where.strip():
        raise _NoExpressionError("the expression is empty")
    if "\0" in where:
        raise _NoExpressionError("the text has a null character")
    alone, enclosed = (_parse_select(connection, text) for text in (where, f"({where}\n)"))
    if _drop_places(alone) != _drop_places(enclosed):
        raise _NoExpressionError("this is not one expression")
    return alone


def _parse_select(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    """The statement `SELECT text`, which must select one expression and do nothing else."""
    tree, bare = _serialize(connection, f"SELECT {text}\n"), _serialize(connection, "SELECT true")
    if len(tree["statements"]) != 1:
        raise _NoExpressionError(f"there are {len(tree['statements'])} statements")
    node: dict[str, Any] = tree["statements"][0]["node"]
    empty = bare["statements"][0]["node"]
    if {**node, "select_list": None} != {**empty, "select_list": None}:
        raise _NoExpressionError("there is more than an expression: FROM, WHERE, ORDER BY and the like have no place")
    if len(node["select_list"]) != 1:
        raise _NoExpressionError(f"there are {len(node['select_list'])} expressions; join them with AND or OR")
    if node["select_list"][0]["alias"]:
        raise _NoExpressionError(f"the name '{node['select_list'][0]['alias']}' after the expression has no place")
    return node


def _serialize(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, Any]:
    try:
        found = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [statement]).fetchall()[0][0]
    except (duckdb.Error, UnicodeError) as error:
        raise _NoExpressionError(str(error).splitlines()[0]) from None
    tree: dict[str, Any] = json.loads(found)
    if tree["error"]:
        said = str(tree["error_message"]).splitlines()[0].rstrip(".")
        raise _NoExpressionError("this is not one expression" if tree["error_type"] != "parser" else said)
    return tree


def _write(connection: duckdb.DuckDBPyConnection, node: dict[str, Any]) -> str:
    """The tree as text again."""
    tree = json.dumps({"error": False, "statements": [{"node": node, "named_param_map": []}]})
    written = str(connection.execute("SELECT json_deserialize_sql($1::JSON)", [tree]).fetchall()[0][0])
    return written.removeprefix("SELECT ")


def _drop_places(tree: Any) -> Any:
    """Without where in the text each part stood."""
    if isinstance(tree, list):
        return [_drop_places(part) for part in tree]
    if isinstance(tree, dict):
        return {name: _drop_places(part) for name, part in tree.items() if not name.startswith("query_location")}
    return tree


def _iterate_parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Every part of an expression, at any depth."""
    rest = [tree]
    while rest:
        part = rest.pop()
        if isinstance(part, dict):
            if "class" in part:
                yield part
            rest += part.values()
        elif isinstance(part, list):
            rest += part


def _check_part(connection: duckdb.DuckDBPyConnection, part: dict[str, Any]) -> None:
    """Of functions, only those that answer from their arguments, the same each time."""
    if part["class"] not in _ALLOWED:
        raise _NoExpressionError(f"{_WORDS.get(part['class'], part['class'])} is not allowed")
    if part["class"] != "FUNCTION":
        return
    name = str(part["function_name"]).lower()
    if part.get("schema") or part.get("catalog"):
        raise _NoExpressionError(f"functions are named without a schema, not as {part['schema']}.{name}")
    if name in _MACROS:
        return
    kinds = connection.execute(
        "SELECT DISTINCT function_type, stability FROM duckdb_functions() WHERE lower(function_name) = $1", [name]
    ).fetchall()
    if not kinds:
        raise _NoExpressionError(f"there is no function '{name}'")
    if {kind for kind, _ in kinds} != {"scalar"}:
        raise _NoExpressionError(f"'{name}' does not answer for a single row")
    if {stability for _, stability in kinds} != {"CONSISTENT"}:
        raise _NoExpressionError(f"'{name}' may answer differently each time the log is read")


_FAILURES = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
)
"""What DuckDB raises because of an expression, not because of where its rows are."""


def try_on_rows(connection: duckdb.DuckDBPyConnection, expression: Expression, relation: str, label: str) -> None:
    """Run an expression on all rows of a relation. Refuse one whose types do not go together, that is not true or
    false, or that fails on a row."""
    try:
        kind = connection.execute(f"DESCRIBE SELECT {expression.sql} FROM {relation} AS elute_rows").fetchall()[0][1]
        if kind == "BOOLEAN":
            connection.execute(f"SELECT count_if{expression.sql} FROM {relation} AS elute_rows").fetchall()
    except _FAILURES as error:
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation} AS elute_rows").fetchall()
        kinds = {name: kind for name, kind, *_ in described if name in expression.columns}
        raise EluteError(f"{label}: `where=`: {_explain_failure(error, kinds)}") from None
    if kind != "BOOLEAN":
        raise EluteError(f"{label}: `where=`: this is of type {kind}, not true or false; {_EXAMPLE}")


def _explain_failure(error: duckdb.Error, kinds: dict[str, str]) -> str:
    """What DuckDB says, and what to write instead where the reason may be text, as all columns of CSV are. `kinds`: the
    types of the expression's columns."""
    first = str(error).splitlines()[0]
    said = (first.partition(" Error: ")[2] or first).rstrip(".")
    text = [name for name, kind in kinds.items() if kind in ("VARCHAR", "JSON")]
    if text:
        cast = "TRY_CAST" if isinstance(error, duckdb.ConversionException) else "CAST"
        return f"{said}; text is in {', '.join(text)}: for a number, write for instance {cast}({text[0]} AS INT)"
    if kinds:
        return f"{said}; the columns' types are {', '.join(f'{name} {kind}' for name, kind in kinds.items())}"
    return f"{said}; {_EXAMPLE}"

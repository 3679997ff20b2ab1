"""Names and values written safely into SQL."""

from __future__ import annotations

from collections.abc import Iterable


def name(column: str) -> str:
    """A quoted identifier."""
    return '"' + column.replace('"', '""') + '"'


def names(columns: Iterable[str]) -> str:
    """Quoted identifiers, comma-separated."""
    return ", ".join(name(column) for column in columns)


def text(value: str) -> str:
    """A quoted string."""
    return "'" + value.replace("'", "''") + "'"


def where_clause(conditions: Iterable[str]) -> str:
    """A WHERE clause of all conditions, or nothing."""
    joined = " AND ".join(conditions)
    return f"WHERE {joined}" if joined else ""

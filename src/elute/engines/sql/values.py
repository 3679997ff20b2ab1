"""Clicks and impressions as numbers: the SQL that reads them, and what can be wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from elute.cells.roles import Roles
from elute.engines.sql import quoting

_NUMBERS = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL",
)  # fmt: skip


MOST = 10**15
"""Impressions of a row: of thousands of such rows the sum can still be held."""

_NESTED = r"BLOB|BINARY|STRUCT|MAP|UNION|ARRAY|VARIANT|.*\]$"
"""Of DuckDB and of Spark."""


class Flaw(NamedTuple):
    """A condition no row may meet, and how to say that some do."""

    column: str
    condition: str
    message: str


def number_sql(column: str, kind: str) -> str | None:
    """SQL for a column's value as a number, NULL where it is none; None where the type rules it out."""
    quoted = quoting.name(column)
    if kind == "BOOLEAN":
        return f"{quoted}::TINYINT"
    if kind.startswith(_NUMBERS) and not kind.endswith("]"):
        return quoted
    if kind == '"NULL"':
        return f"{quoted}::DOUBLE"
    if kind in ("VARCHAR", "JSON"):
        words = f"CASE lower(trim({quoted})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        return f"coalesce(TRY_CAST({quoted} AS DOUBLE), {words})"
    return None


def quick_check_sql(roles: Roles, types: Mapping[str, str]) -> str | None:
    """SQL that is true where nothing is wrong with single clicks, from the column's least and largest value
    only; None where it takes a closer look."""
    kind = types.get(roles.click or "", "")
    if roles.impressions is not None or not (kind == "BOOLEAN" or kind.endswith(("INT", "INTEGER"))):
        return None
    value = number_sql(str(roles.click), kind)
    return f"count(*) = count({value}) AND min({value}) >= 0 AND max({value}) <= 1"


def impressions_sql(roles: Roles, types: Mapping[str, str]) -> str:
    """SQL for the impressions of a row whose values have been checked."""
    if roles.impressions is None:
        return "1"
    return f"({number_sql(roles.impressions, types[roles.impressions])})::BIGINT"


def clicks_sql(roles: Roles, types: Mapping[str, str], kind: str = "BIGINT") -> str:
    """SQL for the clicks of a row whose values have been checked."""
    return "0::" + kind if roles.click is None else f"({number_sql(roles.click, types[roles.click])})::{kind}"


def list_flaws(roles: Roles, types: Mapping[str, str]) -> tuple[list[Flaw], list[str]]:
    """Conditions to count, and sentences about columns whose type alone is wrong."""
    found: list[Flaw] = []
    wrong_types: list[str] = []
    for column in (roles.click, roles.impressions):
        if column is None or column not in types:
            continue
        value = number_sql(column, types[column])
        if value is None:
            wrong_types.append(f"column '{column}' holds {types[column]} values where numbers are expected")
            continue
        quoted = quoting.name(column)
        found += [
            Flaw(column, f"{quoted} IS NULL", "is null (write 0 for none)"),
            Flaw(column, f"{quoted} IS NOT NULL AND {value} IS NULL", "is not a number"),
            Flaw(column, f"{value} < 0", "is negative"),
            Flaw(column, f"{value} > 0 AND {value} % 1 <> 0", "is not a whole number"),
            Flaw(column, f"{value} > {MOST} AND {value} % 1 = 0", "is more than can be counted"),
        ]
        if column == roles.click:
            found.append(_too_many_clicks(roles, types, value))
    return found, wrong_types


def list_nested_ids(roles: Roles, types: Mapping[str, str]) -> list[str]:
    """Sentences about ids that are no single value that people and files can name."""
    return [
        f"column '{column}' holds {types[column]} values, which are no ids; make text or numbers of them"
        for column in roles.ids
        if re.match(_NESTED, types.get(column, ""), re.IGNORECASE)
    ]


def _too_many_clicks(roles: Roles, types: Mapping[str, str], value: str) -> Flaw:
    column = str(roles.click)
    if roles.impressions is None:
        return Flaw(
            column,
            f"{value} > 1",
            "is above 1 (where rows are counts, name the column of impressions with `impressions=`)",
        )
    shown = number_sql(roles.impressions, types[roles.impressions]) if roles.impressions in types else None
    return Flaw(column, f"{value} > {shown or 'NULL'}", f"is above '{roles.impressions}'")

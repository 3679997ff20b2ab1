"""A source's rows that pass the filters. The filter becomes part of the source's relation, so that whatever reads it
reads these rows and no others."""

from __future__ import annotations

from collections.abc import Iterable

from elute.cells.filters import Filters, choose_position, describe_text
from elute.cells.roles import Roles, describe_missing
from elute.engines.duckdb import expression
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting, values
from elute.errors import EluteError

_KEPT = "elute_kept_factor"


def prepare_rows(source: DuckDBSource, columns: Iterable[str], filters: Filters, roles: Roles) -> int | None:
    """Make a source's relations those of the rows that pass, with at least these columns. Gives the number of rows that
    there were before; None where nothing filters."""
    if not filters:
        source.prepare(tuple(dict.fromkeys(columns)))
        return None
    where = None if filters.where is None else expression.parse(filters.where, list(source.types), source.label)
    own = _list_columns(source, filters, roles)
    source.prepare(tuple(dict.fromkeys((*columns, *own, *(where.columns if where else ())))))
    rows = int(source.query_row(f"SELECT count(*) FROM {source.relation}")[0])
    if where is not None:
        with source.translate_errors():
            expression.try_on_rows(source.connection, where, source.relation, source.label)
        _restrict(source, f"WHERE {where.sql}")
    if filters.max_position is not None:
        column = choose_position(roles.bias, lambda bias: _find_flaw(source, bias))
        _restrict(source, f"WHERE {_position_sql(source, column)} <= {filters.max_position}")
    if filters.min_factor_impressions is not None:
        _find_kept_factors(source, roles, filters.min_factor_impressions)
        same = (f"elute_rows.{quoting.name(column)} = {_KEPT}.{quoting.name(column)}" for column in roles.bias)
        _restrict(source, f"SEMI JOIN {_KEPT} ON {' AND '.join(same)}")
    return rows


_BY_STATISTICS = "compressed_materialization,join_filter_pushdown,statistics_propagation"
"""What DuckDB does by the least and largest value of a column, which NaN is not counted among: it takes a hash for a
constant, or a join for empty."""


def merge_equal_floats(source: DuckDBSource, columns: Iterable[str]) -> None:
    """0.0 and -0.0 are one id: from now on it is read as 0.0."""
    kinds = {column: source.types[column] for column in columns if source.types[column] in ("FLOAT", "DOUBLE")}
    if kinds:
        source.execute(f"SET disabled_optimizers = '{_BY_STATISTICS}'")
        same = ", ".join(f"{quoting.name(c)} + 0::{kind} AS {quoting.name(c)}" for c, kind in kinds.items())
        source.relation, source.full_relation = (
            f"(FROM {relation} AS elute_rows SELECT elute_rows.* REPLACE ({same}))"
            for relation in (source.relation, source.full_relation)
        )


def _list_columns(source: DuckDBSource, filters: Filters, roles: Roles) -> tuple[str, ...]:
    """What the filters need beside the columns that `where` names."""
    if not filters.by_factor:
        return ()
    needed = (*roles.ids, *((roles.impressions,) if roles.impressions else ()))
    missing = [describe_missing(column, list(source.types)) for column in needed if column not in source.types]
    if missing:
        raise EluteError(f"{source.label}: {'; '.join(missing)}")
    return needed


def _restrict(source: DuckDBSource, clause: str) -> None:
    source.relation, source.full_relation = (
        f"(SELECT elute_rows.* FROM {relation} AS elute_rows {clause})"
        for relation in (source.relation, source.full_relation)
    )


def _find_flaw(source: DuckDBSource, column: str) -> str | None:
    """Why a column does not hold positions, by its type; text must be numbers throughout, as places in CSV are."""
    kind = source.types[column]
    if kind != "VARCHAR":
        numbers = kind != "BOOLEAN" and values.number_sql(column, kind) is not None
        return None if numbers else f"holds {kind} values"
    name, number = quoting.name(column), _position_sql(source, column)
    failed = f"{name} IS NOT NULL AND {number} IS NULL"
    return describe_text(
        *source.query_row(f"SELECT count_if({failed}), min({name}) FILTER (WHERE {failed}) FROM {source.relation}")
    )


def _position_sql(source: DuckDBSource, column: str) -> str:
    name = quoting.name(column)
    return f"TRY_CAST({name} AS DOUBLE)" if source.types[column] == "VARCHAR" else name


def _find_kept_factors(source: DuckDBSource, roles: Roles, least: int) -> None:
    """Impressions are counted as a survey counts them: on rows without a null id."""
    _, wrong_types = values.list_flaws(roles, source.types)
    if wrong_types:
        raise EluteError(f"{source.label}: {'; '.join(wrong_types)}")
    usable = quoting.where_clause(f"{quoting.name(column)} IS NOT NULL" for column in roles.ids)
    shown, columns = values.impressions_sql(roles, source.types), quoting.names(roles.bias)
    source.execute(
        f"CREATE OR REPLACE TABLE {_KEPT} AS SELECT {columns} FROM {source.relation} {usable} "
        f"GROUP BY {columns} HAVING sum({shown}) >= {least}"
    )

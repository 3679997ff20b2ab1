"""Ids told apart by value: numbers for the distinct items and queries, joined to the rows of the log."""

from __future__ import annotations

from elute.cells.roles import Roles
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting


def number_ids(source: DuckDBSource, roles: Roles, usable: str) -> None:
    """Make the view `elute_log`: the rows of the log with a key for each kind of id. Factors have theirs already, in
    the table `elute_factor`. `usable`: the WHERE clause of the rows that count."""
    kinds = {"item": roles.item, "query": roles.query and (roles.query,)}
    for kind, columns in kinds.items():
        if columns:
            source.execute(
                f"CREATE OR REPLACE TEMP TABLE elute_{kind} AS SELECT *, (row_number() OVER ())::UBIGINT AS "
                f"elute_{kind}_key FROM (SELECT DISTINCT {quoting.names(columns)} FROM {source.relation} {usable})"
            )
    joins = {"factor": roles.bias, **{kind: columns for kind, columns in kinds.items() if columns}}
    keys = ", ".join(f"elute_{kind}_key" for kind in joins)
    joined = " ".join(
        f"JOIN elute_{kind} ON "
        + " AND ".join(f"log.{quoting.name(column)} = elute_{kind}.{quoting.name(column)}" for column in columns)
        for kind, columns in joins.items()
    )
    source.execute(
        f"CREATE OR REPLACE TEMP VIEW elute_log AS SELECT log.*, {keys} FROM {source.relation} AS log {joined}"
    )

"""The smallest items under some factors. Where there are many rows, some of them say first what no example lies beyond:
nearly all others are left out by that, and need not be told apart."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting

MANY, LOOKED_AT = 2_000_000, 200_000
"""Rows of which some are looked at first; and how many."""


def find_least(
    source: DuckDBSource,
    relation: str,
    key: str,
    items: Sequence[str],
    conditions: Sequence[str],
    each: int,
    keys: int,
    rows: int,
) -> pa.Table:
    """`elute_key` and the items' columns: the `each` smallest items under every value of `key`, which has so many
    `keys`, among the rows that meet the conditions, of which there are so many."""
    named = quoting.names(items)
    order = f"QUALIFY row_number() OVER (PARTITION BY elute_key ORDER BY {named}) <= {each} ORDER BY elute_key, {named}"

    def select(where: str) -> str:
        return f"SELECT * FROM (SELECT DISTINCT {key} AS elute_key, {named} FROM {where}) {order}"

    met = quoting.where_clause(conditions)
    if rows > MANY:
        some = select(f"(SELECT * FROM {relation} {met} LIMIT {LOOKED_AT})")
        last = f"SELECT max(row({named})) AS elute_last, count(*) AS n FROM ({some}) GROUP BY elute_key"
        source.execute(
            f"CREATE OR REPLACE TEMP TABLE elute_most AS SELECT max(elute_last) AS elute_last, count(*) AS n "
            f"FROM ({last}) WHERE n = {each}"
        )
        if source.query_row("SELECT n FROM elute_most")[0] == keys:
            within = quoting.where_clause([*conditions, f"row({named}) <= elute_last"])
            return source.query_table(select(f"{relation}, (SELECT elute_last FROM elute_most) {within}"))
    return source.query_table(select(f"{relation} {met}"))

"""`elute.sql`."""

from __future__ import annotations

from elute.cells.filters import Filters
from elute.cells.roles import DEFAULT_BIAS, DEFAULT_CLICK, DEFAULT_DOC, BiasNames, ColumnNames
from elute.engines.warehouse.layout import AboutCells
from elute.engines.warehouse.naming import name_roles
from elute.errors import MissingExtra
from elute.options.takes import takes
from elute.results.base import Fields, Recorded
from elute.results.card import Card


class Statement(Recorded):
    """SQL that counts a log's cells in its warehouse, as `statement`. Fields are attributes."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        sentence = f"A statement in {fields['dialect']} that counts the cells of {fields['table']}."
        return Card("calm", "Statement", sentence, [])


@takes()
def sql(
    table: str,
    dialect: str,
    *,
    query: str | None = None,
    doc: str = DEFAULT_DOC,
    item: ColumnNames | None = None,
    bias: BiasNames = DEFAULT_BIAS,
    click: str = DEFAULT_CLICK,
    impressions: str | None = None,
    session: str | None = None,
    where: str | None = None,
    max_position: int | None = None,
    min_factor_impressions: int | None = None,
) -> Statement:
    """The statement that counts a log's cells in the warehouse where it is, so that only counts travel.

    `table`: schema.table and the like. `dialect`: bigquery, clickhouse, databricks, duckdb, mysql, postgres, redshift,
    snowflake, spark, sqlite or trino. Its result, exported as Parquet, becomes a folder of counts by
    `elute.count(cells, out, from_cells=True)`. Columns and filters are those of `elute.read_log`; `where` is written in
    the dialect. `query`: by default query_id, unless `item` names other columns.
    """
    about = AboutCells(
        table,
        name_roles(
            table, query=query, doc=doc, item=item, bias=bias, click=click, impressions=impressions, session=session
        ),
        Filters(where, max_position, min_factor_impressions),
    )
    try:
        from elute.engines.warehouse.statement import write_statement
    except ModuleNotFoundError as error:
        raise MissingExtra("`elute.sql`", str(error.name), "sql") from error
    fields = {
        "table": table,
        "dialect": dialect,
        "roles": about.roles.to_dict(),
        "filters": about.filters.to_dict(),
        "statement": write_statement(about, dialect),
    }
    return Statement(fields)

"""`elute sql`."""

from __future__ import annotations

from typing import Any

import click

from elute.cli.options import adds_filters, names_columns
from elute.cli.text import print_json
from elute.cli.types import typed

_EPILOG = """\b
Examples:
  elute sql analytics.clicks --dialect bigquery
  elute sql clicks --dialect snowflake --where "day = '2026-11-14'" --session session_id
  elute sql clicks --dialect postgres --bias 'position + device' --max-position 10
"""


@click.command(epilog=_EPILOG)
@click.argument("table", metavar="TABLE", type=typed("table"))
@click.option("--dialect", type=typed("dialect"), required=True, help="The warehouse's SQL.")
@click.option(
    "--query",
    type=typed("query"),
    metavar="COL",
    help="The query's id.  [default: query_id; with --item, none]",
)
@names_columns
@adds_filters
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def sql(table: str, dialect: str, as_json: bool, **options: Any) -> None:
    """Print the statement that counts a log's cells in the warehouse where it is.

    Nothing is run. TABLE is a table or view, as in schema.table; --where is written in the warehouse's own SQL. Give
    the result, exported as Parquet, to 'elute count --from-cells cells.parquet --out counts'.
    """
    from elute.verbs.counting.sql import sql as run

    found = run(table, dialect, **options)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(found.statement)

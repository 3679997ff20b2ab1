"""Databases that play a warehouse: a table goes in, the result of a statement comes out as Arrow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import duckdb
import pyarrow as pa
from postgres_server import Server

Warehouse = Callable[[pa.Table, str, str], pa.Table]
"""Takes a table, the name that it is to have, and a statement."""


def in_duckdb(table: pa.Table, name: str, statement: str) -> pa.Table:
    with closing(duckdb.connect()) as connection:
        connection.register("given", table)
        connection.execute(f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}" AS SELECT * FROM given')
        return connection.sql(statement).to_arrow_table()


def in_sqlite(table: pa.Table, name: str, statement: str) -> pa.Table:
    """It has no types but those of values: ids come back as those of the table."""

    def quote(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {quote(name)} ({', '.join(map(quote, table.column_names))})")
        places = ", ".join("?" * table.num_columns)
        connection.executemany(
            f"INSERT INTO {quote(name)} VALUES ({places})", zip(*table.to_pydict().values(), strict=True)
        )
        found = connection.execute(statement)
        columns = [column[0] for column in found.description]
        return _type_ids(pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in found]), table)


def in_postgres(server: Server) -> Warehouse:
    def run(table: pa.Table, name: str, statement: str) -> pa.Table:
        server.load(table, name)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return _type_ids(cursor.fetch_arrow_table(), table)

    return run


def in_spark(table: pa.Table, name: str, statement: str) -> pa.Table:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    session.createDataFrame(table).createOrReplaceTempView(name)
    return session.sql(statement).toArrow()


def _type_ids(found: pa.Table, table: pa.Table) -> pa.Table:
    def take(column: str) -> Any:
        if column not in table.column_names or not found.num_rows:
            return found[column]
        return (
            pa.array(found[column].to_pylist(), pa.int64()).cast(pa.bool_())
            if (pa.types.is_boolean(table.schema.field(column).type) and pa.types.is_integer(found[column].type))
            else pa.array(found[column].to_pylist(), table.schema.field(column).type)
        )

    return pa.table({column: take(column) for column in found.column_names})

"""A table or view in Postgres, streamed as Arrow batches over ADBC.

The columns that play a role are copied once, into the scratch table of `elute.engines.duckdb.source`, by COPY in
binary, over several connections where the table is large (`postgres_ranges`); what follows runs on that copy. Grouping
in Postgres first was measured and costs the server more than it saves: see docs/sources.md.

Every read is a transaction of its own that is read only, so that not even a view's function can write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any

import pyarrow as pa

from elute._util.urls import hide_secrets, scrub_passwords
from elute.engines.remote.postgres_ranges import read_ranges, split_blocks
from elute.engines.sql import quoting
from elute.errors import EluteError, MissingExtra

_URL = re.compile(r"(?P<server>\w+://(?:[^/@]*@)?[^#@]*)#(?P<table>.+)", re.DOTALL)
_AS_THEY_ARE = (
    "bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "date", "timestamp", "timestamptz", "bytea",
)  # fmt: skip
_DIGITS = 18
"""That an integer of 64 bits always holds."""
_DESCRIBE = """
    SELECT a.attname, coalesce(base.typname, own.typname),
           CASE WHEN base.oid IS NULL THEN a.atttypmod ELSE own.typtypmod END
    FROM pg_attribute AS a
    JOIN pg_type AS own ON own.oid = a.atttypid
    LEFT JOIN pg_type AS base ON own.typtype = 'd' AND base.oid = own.typbasetype
    WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_TRUST = "set sslrootcert= or PGSSLROOTCERT to the certificate of the authority that signed it"
_NEXT = {
    "root certificate file": _TRUST,
    "certificate verify failed": _TRUST,
    "does not match host name": "name the server as its certificate does",
    "password": "give it in PGPASSWORD or ~/.pgpass",
    "permission denied": "GRANT SELECT to this user, or name another in the URL",
    "relation": "write #schema.table",
    "Connection refused": "start the server, or correct host and port",
}
"""What to do about a message that has these words."""


class PostgresTable:
    """Scanned by DuckDB as often as it likes: the query starts with the first batch that is asked for."""

    def __init__(self, url: str) -> None:
        self.label = hide_secrets(url)
        self._url = url
        self._expressions: dict[str, str] = {}
        numbers: dict[str, pa.DataType] = {}
        with transaction(url) as (cursor, table):
            cursor.execute(_DESCRIBE.format(table=quoting.text(table)))
            for column, kind, modifier in cursor.fetchall():
                self._expressions[column], number = _column_sql(column, kind, modifier)
                if number is not None:
                    numbers[column] = number
            if not self._expressions:
                raise EluteError(f"{self.label} has no columns")
            cursor.execute(f"{self._select_sql(table)} LIMIT 0")
            read = cursor.fetch_record_batch().schema
        self._schema = pa.schema([(column.name, numbers.get(column.name, column.type)) for column in read])

    def select(self, columns: Sequence[str]) -> PostgresTable:
        """The same table with fewer columns: no others are sent."""
        fewer = copy(self)
        fewer._expressions = {column: self._expressions[column] for column in columns}
        fewer._schema = pa.schema([self._schema.field(column) for column in columns])
        return fewer

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream interface."""
        return pa.RecordBatchReader.from_batches(self._schema, self._read_batches()).__arrow_c_stream__(
            requested_schema
        )

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        ranges = self._find_ranges()
        with transaction(self._url) as (cursor, table):
            queries = [f"{self._select_sql(table)} WHERE {rows}" for rows in ranges]
            for batch in read_ranges(cursor, partial(transaction, self._url), queries):
                yield batch if batch.schema.equals(self._schema) else batch.cast(self._schema)

    def _find_ranges(self) -> list[str]:
        """In a transaction that may fail: servers that only speak as Postgres does have no blocks."""
        with suppress(EluteError), transaction(self._url) as (cursor, table):
            return split_blocks(cursor, table)
        return ["true"]

    def _select_sql(self, table: str) -> str:
        return f"SELECT {', '.join(self._expressions.values())} FROM {table}"


@contextmanager
def transaction(url: str, snapshot: str | None = None) -> Iterator[tuple[Any, str]]:
    """A cursor in a transaction that sees one state of the table (that of another's, by its name) and cannot write, and
    the table's quoted name."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtra("Postgres", "its driver", "postgres") from None
    server, table = _split_url(url)
    try:
        with dbapi.connect(server, autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if snapshot is not None:
                cursor.execute(f"SET TRANSACTION SNAPSHOT {quoting.text(snapshot)}")
            cursor.execute("SET client_encoding = 'UTF8'")
            yield cursor, table
    except (Error, pa.ArrowException, OSError) as error:
        raise EluteError(
            f"cannot read {hide_secrets(url)}: {scrub_passwords(_summarise_error(str(error)), url)}"
        ) from None


def _split_url(url: str) -> tuple[str, str]:
    """The server as libpq takes it, and the table's quoted name."""
    matched = _URL.fullmatch(url)
    if matched:
        parts = matched["table"].split(".")
        return matched["server"], ".".join(quoting.name(part) for part in parts)
    if "#" not in url:
        raise EluteError(f"{hide_secrets(url)} names no table; write {hide_secrets(url)}#schema.table")
    raise EluteError(
        f"{hide_secrets(url)}: cannot tell user, host and table apart; in a password, write / @ # as %2F %40 %23"
    )


def _column_sql(column: str, kind: str, modifier: int) -> tuple[str, pa.DataType | None]:
    """SQL that reads a column, and the type of a numeric, which arrives as text.

    Without a given precision a numeric stays text, its trailing zeros removed: 1.0 and 1.00 are one number.
    """
    quoted = quoting.name(column)
    if kind in _AS_THEY_ARE:
        return f"{quoted}::{kind} AS {quoted}", None
    if kind != "numeric":
        return f"{quoted}::text AS {quoted}", None
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    if modifier < 0 or precision > 38 or scale > precision:
        return f"trim_scale({quoted})::text AS {quoted}", None
    whole = scale == 0 and precision <= _DIGITS
    return f"{quoted}::text AS {quoted}", pa.int64() if whole else pa.decimal128(precision, scale)


def _summarise_error(message: str) -> str:
    """The server's own first line, and what to do."""
    found = re.search(r"(?:ERROR|FATAL): +(.*)", message) or re.search(r"Failed to connect: (.*)", message)
    line = (found[1] if found else message.strip().partition("\n")[0]).strip()
    step = next((step for words, step in _NEXT.items() if words in line), None)
    return f"{line}; {step}" if step else line

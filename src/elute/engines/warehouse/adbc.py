"""A warehouse that an ADBC driver reaches: elute's own statement runs there, and only counts travel.

`adbc://DRIVER?OPTION=VALUE&…#TABLE`: the options are the driver's own (`uri`, `username`, …), and `dialect` where the
driver does not tell which SQL is spoken. A value that begins with `env:` is that of a variable of the environment, so
that what is secret need not stand in a command. Nothing of the options is printed, nor kept in any file.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

import pyarrow as pa

from elute._util import files, scratch
from elute._util.urls import hide_secrets, scrub_values
from elute.cells.filters import Filters
from elute.cells.roles import DEFAULT_QUERY, Roles
from elute.engines.warehouse.engine import CellsEngine
from elute.engines.warehouse.layout import AboutCells
from elute.engines.warehouse.naming import name_roles
from elute.errors import EluteError, MissingExtra
from elute.options.takes import take_option

SPOKEN = {
    "bigquery": "bigquery",
    "flightsql": None,
    "postgresql": "postgres",
    "snowflake": "snowflake",
    "sqlite": "sqlite",
}
"""Drivers that are on PyPI as `adbc-driver-NAME`, and the dialect of each."""

_ADDRESS = re.compile(r"adbc://(?P<driver>\w+)/?(?:\?(?P<options>.*))?#(?P<table>[^#]+)", re.DOTALL)
_FROM = "env:"
_ROWS = "adbc.sqlite.query.batch_rows"
"""SQLite has no types: the driver finds them in the first so many rows."""


class Address(NamedTuple):
    """What a source says. `options`: of the driver, by their names there."""

    driver: str
    dialect: str
    options: dict[str, str]
    table: str

    @classmethod
    def parse(cls, source: str) -> Self:
        label, matched = hide_secrets(source), _ADDRESS.fullmatch(source)
        if matched is None:
            raise EluteError(f"{label} is not such an address; write adbc://DRIVER?uri=ADDRESS#schema.table")
        driver = matched["driver"]
        if driver not in SPOKEN:
            raise EluteError(f"{label}: there is no driver '{driver}'; known are {', '.join(SPOKEN)}")
        options = dict(_read_option(one, label) for one in (matched["options"] or "").split("&") if one)
        dialect = options.pop("dialect", SPOKEN[driver])
        if dialect is None:
            raise EluteError(f"{label}: {driver} does not tell which SQL is spoken there; add &dialect=NAME")
        if driver == "sqlite" and not options.get("uri", "").startswith("file:"):
            options["uri"] = _open_to_read(options.get("uri", ""), label)
        return cls(driver, str(take_option("dialect", dialect)), options, matched["table"])


def open_adbc(source: str, options: Mapping[str, Any]) -> CellsEngine:
    """Count there; what comes back takes the log's place. `options`: of `elute.read_log`."""
    address = Address.parse(source)
    folder, remove = scratch.make_folder(options["spill"])
    try:
        with _connect(source, address) as connection:
            about = AboutCells(address.table, _name_roles(connection, address, options), Filters.from_options(options))
            statement, path = _write_statement(about, address), folder / "cells.parquet"
            with connection.cursor() as cursor:
                if address.driver == "sqlite":
                    cursor.adbc_statement.set_options(**{_ROWS: str(1 << 16)})
                cursor.execute(statement)
                files.write_row_groups(path, _to_tables(cursor.fetch_record_batch(), hide_secrets(source)))
        return CellsEngine([str(path)], lambda _: about, options["exact"], options["memory"], options["spill"])
    finally:
        remove()


def _name_roles(connection: Any, address: Address, options: Mapping[str, Any]) -> Roles:
    """The usual query column is one where items are named otherwise, if the table has it."""
    names = {name: options[name] for name in ("query", "doc", "item", "bias", "click", "impressions", "session")}
    if names["item"] is not None and names["query"] == DEFAULT_QUERY:
        *schema, table = (part.strip('"') for part in address.table.split("."))
        found = connection.adbc_get_table_schema(table, db_schema_filter=schema[-1] if schema else None)
        names["query"] = DEFAULT_QUERY if DEFAULT_QUERY in map(str.lower, found.names) else None
    return name_roles(address.table, **names)


def _read_option(text: str, label: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise EluteError(f"{label}: what follows ? is not NAME=VALUE with & between; write & as %26 within a value")
    value = unquote(value)
    if value.startswith(_FROM):
        variable = value.removeprefix(_FROM)
        if variable not in os.environ:
            raise EluteError(f"{label}: the environment has no {variable}; set it")
        value = os.environ[variable]
    return unquote(name), value


def _open_to_read(path: str, label: str) -> str:
    """A file that is not there would be made."""
    if not Path(path).is_file():
        raise EluteError(f"{label}: there is no such file; write adbc://sqlite?uri=FILE#table")
    return f"{Path(path).resolve().as_uri()}?mode=ro"


def _write_statement(about: AboutCells, address: Address) -> str:
    try:
        from elute.engines.warehouse.statement import write_statement
    except ModuleNotFoundError as error:
        raise MissingExtra("adbc://", str(error.name), "adbc") from error
    return write_statement(about, address.dialect)


@contextmanager
def _connect(source: str, address: Address) -> Iterator[Any]:
    """In a transaction that is rolled back."""
    try:
        from adbc_driver_manager import Error, dbapi
    except ImportError:
        raise MissingExtra("adbc://", "adbc-driver-manager", "adbc") from None
    try:
        path = importlib.import_module(f"adbc_driver_{address.driver}")._driver_path()
    except ImportError:
        package = f"adbc-driver-{address.driver}"
        raise EluteError(f'adbc://{address.driver} needs {package}; run: pip install "elute[adbc]" {package}') from None
    try:
        with dbapi.connect(driver=path, db_kwargs=address.options, autocommit=False) as connection:
            yield connection
    except (Error, pa.ArrowException, OSError) as error:
        said = " ".join(str(error).partition("\nquery")[0].split())
        raise EluteError(
            f"cannot count {hide_secrets(source)}: {scrub_values(said, address.options)[:300]}; "
            f"`elute.sql` gives the statement ({address.dialect})"
        ) from None


def _to_tables(batches: Iterable[pa.RecordBatch], label: str) -> Iterator[pa.Table]:
    some = False
    for batch in batches:
        if batch.num_rows:
            some = True
            yield pa.Table.from_batches([batch])
    if not some:
        raise EluteError(f"{label} has no rows: the log has none, or none passes the filters")

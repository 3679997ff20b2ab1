"""A DuckDB connection of elute's own: silent, and without the network."""

from __future__ import annotations

from contextlib import suppress

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory that shows no progress bar and fetches no extension."""
    connection = duckdb.connect()
    connection.execute("SET autoinstall_known_extensions = false")
    with suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets there is no bar to switch off
        connection.execute("SET enable_progress_bar = false")
    return connection

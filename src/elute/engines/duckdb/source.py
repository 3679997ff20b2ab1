"""From what a user names (paths, globs, a database table, a table in memory) to a relation in DuckDB.

Parquet and database files are read in place, column by column. Text formats are parsed once, into a
compressed scratch table of just the columns that play a role: parsing is the slow part, and a check
passes over the log several times. So is what comes over a network, from Postgres or as remote Parquet.

CSV has no types. Everything in it is read as text, so that the ids 007 and 7 stay two ids.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from elute._util import scratch
from elute._util.threads import count_threads
from elute._util.urls import hide_secrets, is_postgres, is_remote
from elute.cells.roles import refuse_lookalikes
from elute.engines.duckdb.connection import connect
from elute.engines.duckdb.local_files import LocalFiles
from elute.engines.duckdb.ranges import RowRange, split_database_table, split_files, split_table
from elute.engines.source_state import State, file_state
from elute.engines.sql import quoting
from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.engines.remote.http_table import HttpTable
    from elute.engines.remote.postgres import PostgresTable

_DATABASE = "duckdb://"


class Cursor(NamedTuple):
    """A range of a log's rows, and what reads it."""

    connection: duckdb.DuckDBPyConnection
    relation: str


class DuckDBSource:
    """A log's table as DuckDB sees it. Owns the connection and the scratch folder.

    `relation` has the columns that play a role (see `prepare`), `full_relation` has all.
    """

    def __init__(self, source: object, label: str = "the table", spill: str | Path | None = None) -> None:
        self.scratch, remove = scratch.make_folder(spill)
        self._remove_scratch = weakref.finalize(self, remove)
        self.connection = connect()
        self.connection.execute(f"SET temp_directory = {quoting.text(str(self.scratch))}")
        self.connection.execute("SET streaming_buffer_size = '64MB'")
        self.connection.execute("SET enable_external_file_cache = false")  # the system keeps files' bytes already
        self.connection.execute(f"SET threads = {count_threads()}")
        self.connection.execute("SET perfect_ht_threshold = 20")  # factors of small integers, grouped by array
        self.untyped = False
        self._copied_once = False
        self._over_network = False
        self._streamed: PostgresTable | HttpTable | None = None
        self._json: LocalFiles | None = None
        self._files: list[str] = []
        self._table: pa.Table | None = None
        self.state: list[State] = []
        self.label = label
        self.relation = self._whole = self._open(source)
        self.full_relation = self.relation
        self.types = self._describe(self.relation)
        self._refuse_lookalikes()

    @property
    def rows_in_files(self) -> int:
        """Of Parquet files, from what stands at their end; 0 for anything else."""
        return int(self.query_row(f"SELECT count(*) FROM {self._whole}")[0]) if self._files else 0

    def close(self) -> None:
        """Release the connection and delete the scratch folder."""
        self.connection.close()
        self._remove_scratch()

    def read_table(self) -> pa.Table:
        """The whole source in memory, for tables that are known to be small; closes it."""
        table = self.query_table(f"SELECT * FROM {self.relation}")
        self.close()
        return table

    def prepare(self, columns: Sequence[str]) -> None:
        """Parse or fetch a source that is slow to read, once, keeping these columns."""
        if not self._copied_once or not columns:
            return
        path = str(self.scratch / "log.duckdb")
        if self._json is not None:
            self.relation = self._typed_json_relation(self._json, columns)
            self.full_relation = self._typed_json_relation(self._json, list(self.types))
        if self._streamed:
            self.relation = self._register("elute_roles", self._streamed.select(columns))
        with self.translate_errors():
            self.connection.execute(f"ATTACH {quoting.text(path)} AS scratch")
            self.connection.execute(f"CREATE TABLE scratch.log AS SELECT {quoting.names(columns)} FROM {self.relation}")
        self.relation = self._whole = "scratch.log"
        self._copied_once = False

    @contextmanager
    def split(self, whole: bool = False) -> Iterator[list[Cursor]]:
        """Cursors over ranges of `relation`, for a thread each: DuckDB works in the threads that ask. One cursor, and
        DuckDB on all cores, where it cannot be split, or is to be read `whole`."""
        threads = count_threads()
        found = [RowRange(self._whole)] if whole or threads == 1 else self._find_ranges(threads)
        cursors = []
        for one in found:
            cursor = self.connection.cursor() if len(found) > 1 else self.connection
            if one.table is not None and len(found) > 1:
                cursor.register(self._whole, one.table)
            # It stands first in the text, before any condition, which may have the same words.
            cursors.append(Cursor(cursor, self.relation.replace(self._whole, one.relation, 1)))
        if len(found) == 1:
            yield cursors
            return
        self.execute("SET threads = 1")
        try:
            yield cursors
        finally:
            for opened in cursors:
                opened.connection.close()
            self.execute(f"SET threads = {threads}")

    def _find_ranges(self, ranges: int) -> list[RowRange]:
        whole = self._whole
        if self._table is not None:
            return split_table(whole, self._table, ranges)
        if self._files:
            return split_files(self._files, list(self.types), ranges) or [RowRange(whole)]
        if whole.startswith(("scratch.", "source.")):
            return split_database_table(self.connection, whole, ranges)
        return [RowRange(whole)]

    def execute(self, query: str) -> None:
        """Run a statement."""
        with self.translate_errors():
            self.connection.execute(query)

    def query_table(self, query: str) -> pa.Table:
        """All rows of an answer."""
        with self.translate_errors():
            return self.connection.sql(query).to_arrow_table()

    def query_row(self, query: str) -> tuple[Any, ...]:
        """The first row of an answer."""
        with self.translate_errors():
            row: tuple[Any, ...] = self.connection.execute(query).fetchall()[0]
            return row

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn what DuckDB says of an unreadable log into one line that names the log."""
        try:
            yield
        except RuntimeError as error:
            if str(error) == "Query interrupted":  # so DuckDB hands on what Ctrl-C raised
                raise KeyboardInterrupt from None
            raise
        except (OSError, pa.ArrowException) as error:  # what Arrow makes of an error on the way
            raise EluteError(f"cannot read {self.label}: {_one_line(error)}") from error
        except duckdb.OutOfMemoryException as error:
            raise EluteError(f"{self.label} needs more memory than allowed; raise `memory=`") from error
        except duckdb.ConnectionException as error:
            raise EluteError(f"{self.label} is closed; ask before it is, or keep it open") from error
        except duckdb.Error as error:
            if not self._over_network:
                raise EluteError(f"cannot read {self.label}: {_one_line(error)}") from error
            from elute.engines.remote import objects

            failed = f"cannot read {self.label}: "
            raise EluteError(failed + objects.summarise_error(error).removeprefix(failed)) from None

    def _refuse_lookalikes(self) -> None:
        """DuckDB gives the second of two such columns another name, `A_1`; the source says whether it had that."""
        if not any(re.fullmatch(r"(.*)_\d+", name, re.DOTALL) for name in self.types):
            return
        if self._table is not None:
            refuse_lookalikes(self._table.column_names, self.label)
        for file in self._files:
            with suppress(OSError, pa.ArrowException):  # DuckDB says what is wrong with it
                refuse_lookalikes(pq.read_schema(file).names, file)

    def _open(self, source: object) -> str:
        if isinstance(source, str | Path):
            return self._open_paths([str(source)])
        if isinstance(source, Sequence) and source and all(isinstance(path, str | Path) for path in source):
            return self._open_paths([str(path) for path in source])
        self._table = to_arrow(source)
        return self._register("log_table", self._table)

    def _register(self, name: str, table: object) -> str:
        self.connection.register(name, table)
        return name

    def _open_paths(self, paths: list[str]) -> str:
        self.label = (
            hide_secrets(paths[0]) if len(paths) == 1 else f"{hide_secrets(paths[0])} and {len(paths) - 1} more"
        )
        if any(path.startswith(_DATABASE) for path in paths):
            return self._open_database(paths)
        if any(is_postgres(path) or is_remote(path) for path in paths):
            return self._open_remote(paths)
        files = LocalFiles(paths, self.label)
        self.state = [file_state(name) for name in files.names]
        if files.kind == "parquet":
            self._files = files.names
        else:
            self._copied_once = True
        self.untyped = files.kind == "csv"
        self._json = files if files.kind == "ndjson" else None
        return files.relation(self._describe)

    def _describe(self, relation: str) -> dict[str, str]:
        """Columns and their types."""
        with self.translate_errors():
            described = self.connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        return {row[0]: row[1] for row in described}

    def _open_remote(self, paths: list[str]) -> str:
        """What comes over a network is streamed each time it is read: `prepare` keeps what is read often."""
        self._copied_once = self._over_network = True
        if not any(is_postgres(path) for path in paths):
            from elute.engines.remote import http_table, objects

            found, self.state = objects.open_files(paths, self.label)
            if isinstance(found, http_table.HttpTable):
                self._streamed = found
            return self._register("log_table", found)
        if len(paths) > 1:
            raise EluteError(f"{self.label}: pass one Postgres table at a time")
        from elute.engines.fingerprint import postgres
        from elute.engines.remote.postgres import PostgresTable

        self._streamed = PostgresTable(paths[0])
        known = postgres.table_state(paths[0])
        self.state = [known] if known else []
        return self._register("log_table", self._streamed)

    def _typed_json_relation(self, files: LocalFiles, columns: Sequence[str]) -> str:
        """JSON strings stay strings, also those that look like a date or a UUID; numbers among them become strings."""
        guessed = ("DATE", "TIME", "UUID", "JSON")
        types = {c: "VARCHAR" if self.types[c].startswith(guessed) else self.types[c] for c in columns}
        self.types.update(types)
        return files.typed_relation(types)

    def _open_database(self, paths: list[str]) -> str:
        if len(paths) > 1:
            raise EluteError("pass one duckdb:// table at a time")
        file, _, table = paths[0].removeprefix(_DATABASE).partition("#")
        if not table:
            raise EluteError(f"{paths[0]} names no table; write duckdb://{file}#table")
        if not Path(file).is_file():
            raise EluteError(f"no database file '{file}'")
        self.state = [file_state(file)]
        with self.translate_errors():
            self.connection.execute(f"ATTACH {quoting.text(str(Path(file).absolute()))} AS source (READ_ONLY)")
        return "source." + ".".join(quoting.name(part) for part in table.split("."))


def to_arrow(table: Any) -> pa.Table:
    """A pandas, polars or Arrow table (or anything with the Arrow stream interface) as an Arrow table."""
    try:
        if isinstance(table, pa.Table):
            return table
        if type(table).__module__.startswith("pandas"):
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "to_arrow"):
            return table.to_arrow()
        if hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise EluteError(f"cannot read the table: {_one_line(error)}") from error
    raise EluteError(
        f"cannot read a log from {type(table).__name__}; pass a path, a glob, or a pandas, polars or Arrow table"
    )


def _one_line(error: Exception) -> str:
    """What a library says is wrong, without its class prefix and its advice on SQL."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    prefix, colon, rest = lines[0].partition(" Error: ")
    line = rest if colon and len(prefix) < 40 else lines[0]
    if line.startswith("CSV Error on Line") and len(lines) > 2:
        line = f"{line}: {lines[2]}"
    return line if len(line) <= 240 else line[:237] + "…"

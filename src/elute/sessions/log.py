"""The result pages of a click log, for session click models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util import scratch
from elute.engines.duckdb.filtering import prepare_rows
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting, values
from elute.errors import EluteError
from elute.io.sessions import SessionColumns, SessionParts, Vocabulary, read_sessions, read_vocabulary
from elute.log import ClickLog

if TYPE_CHECKING:
    from elute.clicks.sessions import Sessions

_AT_ONCE = 20_000_000
"""Rows; a longer log is read in parts, each time it is gone through."""


@contextmanager
def open_pages(log: ClickLog, session: str | None) -> Iterator[tuple[Path, SessionColumns]]:
    """A log's pages as a Parquet file. One that is such a file, and is read as a whole, is read where it is; others are
    copied by DuckDB, in the order of pages."""
    columns = _check_columns(log, session)
    if not log.filters and isinstance(log.source, str | Path) and _is_readable(Path(log.source), columns):
        yield Path(log.source), columns
        return
    with scratch.open_folder() as folder:
        path = folder / "pages.parquet"
        _copy_pages(log, path, columns)
        yield path, columns


def _check_columns(log: ClickLog, session: str | None) -> SessionColumns:
    """What session models ask of a log's columns, or what is wrong with them."""
    roles, label = log.roles, log.engine.label
    if session is None:
        raise EluteError(f"session click models need the pages of {label}; name the column of page ids with `session=`")
    if session not in log.engine.columns:
        raise EluteError(f"{label} has no column '{session}'; name the column of page ids with `session=`")
    if roles.click is None or roles.impressions is not None:
        raise EluteError(
            f"session click models need a row for every impression of {label}, clicked or not; counts are not enough"
        )
    if len(roles.bias) != 1 or len(roles.item) != 2 or roles.item[0] != roles.query:
        raise EluteError(
            "session click models need query and document as the item and position as the only bias column"
        )
    if log.survey.nulls:
        column, rows = next(iter(log.survey.nulls.items()))
        raise EluteError(f"{label}: '{column}' is null in {rows:,} rows; session click models need complete pages")
    return SessionColumns(
        doc=roles.item[1], click=roles.click, query=roles.item[0], session=session, position=roles.bias[0]
    )


def _is_readable(path: Path, columns: SessionColumns) -> bool:
    """Whether a path is a Parquet file whose positions and clicks need no conversion."""
    if not path.is_file() or path.suffix.lower() not in (".parquet", ".pq"):
        return False
    schema = pq.read_schema(path)
    click, position = schema.field(columns.click).type, schema.field(columns.position).type
    return bool(pa.types.is_integer(position) and (pa.types.is_integer(click) or pa.types.is_boolean(click)))


def _copy_pages(log: ClickLog, path: Path, columns: SessionColumns) -> None:
    source = DuckDBSource(log.source)
    try:
        prepare_rows(source, columns, log.filters, log.roles)
        place, click = quoting.name(columns.position), quoting.name(columns.click)
        clicks = values.clicks_sql(log.roles, source.types)
        with source.translate_errors():
            source.connection.execute(
                f"COPY (SELECT {quoting.names((columns.session, columns.query, columns.doc))}, "
                f"{place}::BIGINT AS {place}, {clicks} AS {click} FROM {source.relation} "
                f"ORDER BY {quoting.name(columns.session)}, {place}) TO {quoting.text(str(path))} (FORMAT parquet)"
            )
    finally:
        source.close()


def read_pages(
    path: Path, columns: SessionColumns, vocabulary: Vocabulary | None = None
) -> tuple[Sessions | SessionParts, Vocabulary]:
    """All sessions of a file, at once or, where they are many, in parts."""
    if pq.read_metadata(path).num_rows <= _AT_ONCE:
        return read_sessions(path, columns, vocabulary)
    known = vocabulary or read_vocabulary(path, columns)
    return SessionParts(path, known, columns), known


def iterate_parts(source: Sessions | SessionParts) -> Iterable[Sessions]:
    """Sessions, part by part."""
    return source if isinstance(source, SessionParts) else (source,)

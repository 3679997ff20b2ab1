"""A log as the pages users saw: for every page the rows of a features table in the order shown, and the clicks.

DuckDB joins and sorts, so that ids stay there as text; what comes back is numbers, about 20 bytes an impression.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.engines import sql, values
from elute.engines.sources import Source
from elute.errors import EluteError
from elute.io.features import Features
from elute.roles import Roles

_SORTED = "1, 2, 4"
"""By page, place and document, so that the order does not depend on the scan."""


class Pages(NamedTuple):
    """Arrays (pages, places)."""

    documents: NDArray[np.int32]
    """Rows of the features; -1 after a page's last document."""
    clicks: NDArray[np.float32]
    factor: NDArray[np.int32]
    """Codes of the log's factors; 0 where there is no document."""
    scores: NDArray[np.float32] | None
    """What the logging policy ranked by."""


class Asked(NamedTuple):
    """What to read of a log."""

    roles: Roles
    """With a session."""
    position: str
    """The column that orders a page."""
    score: str | None
    whole: bool
    """Whether places must be positions: 1, 2, 3, … without gaps."""


def read_pages(source: object, asked: Asked, features: Features, factors: pa.Table) -> Pages:
    """The pages of a log. A page is a session and, where there is one, a query."""
    opened = Source(source)
    try:
        table = _rows(opened, asked, features, factors)
    finally:
        opened.close()
    rows = {name: table[name].to_numpy() for name in table.column_names}
    begins = np.flatnonzero(np.concatenate(([True], rows["page"][1:] != rows["page"][:-1])))
    length = np.diff(begins, append=table.num_rows)
    place = np.arange(table.num_rows) - np.repeat(begins, length)
    if asked.whole:
        _check_places(opened.label, asked.position, rows["position"], place, begins)
    page = np.repeat(np.arange(len(begins)), length)
    shape = (len(begins), int(length.max()))

    def lists(name: str, otherwise: int) -> NDArray[Any]:
        out: NDArray[Any] = np.full(shape, otherwise, rows[name].dtype)
        out[page, place] = rows[name]
        return out

    return Pages(
        lists("document", -1),
        lists("click", 0).astype(np.float32),
        lists("factor", 0),
        None if asked.score is None else lists("score", 0),
    )


def _rows(opened: Source, asked: Asked, features: Features, factors: pa.Table) -> pa.Table:
    """The impressions, in the order of pages and of places on them."""
    roles, key = asked.roles, features.key.column_names
    session = str(roles.session)
    wanted = tuple(dict.fromkeys((*roles.columns, *key, asked.position, *filter(None, (asked.score,)))))
    for column in wanted:
        if column not in opened.types:
            raise EluteError(f"{opened.label} has no column '{column}', by which {features.label} names documents")
    opened.prepare(wanted)
    opened.connection.register("elute_documents", _numbered(features.key))
    opened.connection.register("elute_factors", _numbered(factors))
    page = (session,) if roles.query is None else (session, roles.query)
    columns = {
        "page": f"hash({_of_log(page)})",
        "position": f"({_number(opened, asked.position)})::BIGINT",
        "click": f"({_number(opened, str(roles.click))})::UTINYINT",
        "document": "coalesce(elute_documents.elute_row, -1)",
        "factor": "coalesce(elute_factors.elute_row, -1)",
    }
    if asked.score is not None:
        columns["score"] = f"coalesce(({_number(opened, asked.score)})::FLOAT, 'nan'::FLOAT)"
    query = (
        f"SELECT {', '.join(f'{expression} AS {name}' for name, expression in columns.items())} "
        f"FROM {opened.relation} AS log {_join('elute_documents', key)} {_join('elute_factors', factors.column_names)} "
        f"{sql.conjunction(f'log.{sql.name(column)} IS NOT NULL' for column in dict.fromkeys((*roles.ids, *key)))} "
    )
    with opened.reading():
        lost = f"SELECT count(*) FROM {opened.relation} WHERE {sql.name(session)} IS NULL"
        nameless = opened.connection.execute(lost).fetchall()[0][0]
        if nameless:
            raise EluteError(f"{opened.label}: '{session}' is null in {nameless:,} rows, which then belong to no page")
        table = opened.connection.sql(f"{query} ORDER BY {_SORTED}").to_arrow_table()
    _check_rows(opened, table, asked, features, key)
    return table


def _check_rows(opened: Source, table: pa.Table, asked: Asked, features: Features, key: list[str]) -> None:
    document, factor = (table[name].to_numpy() for name in ("document", "factor"))
    if not len(document):
        raise EluteError(f"{opened.label} has no row that names a document by {', '.join(key)}")
    if (document < 0).any():
        with opened.reading():
            names = opened.connection.execute(
                f"SELECT {_of_log(key)} FROM {opened.relation} AS log {_join('elute_documents', key)} "
                f"WHERE elute_documents.elute_row IS NULL ORDER BY ALL LIMIT 1"
            ).fetchall()[0]
        first = ", ".join(f"{column} {name}" for column, name in zip(key, names, strict=True))
        raise EluteError(
            f"{int((document < 0).sum()):,} of {len(document):,} impressions show documents without features in "
            f"{features.label} ({first}); add them, or leave their pages out of the log"
        )
    if (factor < 0).any() or table["position"].null_count:
        columns = ", ".join((*asked.roles.bias, asked.position))
        raise EluteError(f"{opened.label}: {columns} cannot be read as factors and places; write places as numbers")
    if asked.score is not None and not np.isfinite(table["score"].to_numpy()).all():
        bad = int((~np.isfinite(table["score"].to_numpy())).sum())
        raise EluteError(f"{opened.label}: '{asked.score}' is no finite number in {bad:,} rows; leave their pages out")


def _check_places(
    label: str, column: str, position: NDArray[np.int64], place: NDArray[np.int64], begins: NDArray[np.int64]
) -> None:
    """Positions must count from 1 (or all from 0), as learners have a propensity for each place of a list."""
    off = position != place + (0 if position.min() == 0 else 1)
    if off.any():
        pages = len(np.unique(np.searchsorted(begins, np.flatnonzero(off), side="right")))
        raise EluteError(
            f"{label}: on {pages:,} of {len(begins):,} pages '{column}' does not count from 1 without gaps; "
            "leave these pages out, or use a learner that needs no whole pages: naive, ipw, ipw-random, elute"
        )


def _numbered(table: pa.Table) -> pa.Table:
    """The columns under names of our own, with a row number."""
    renamed = table.rename_columns([f"elute_key_{number}" for number in range(table.num_columns)])
    return renamed.append_column("elute_row", pa.array(np.arange(table.num_rows, dtype=np.int32)))


def _join(name: str, columns: list[str]) -> str:
    """By value, whatever the types: an id may be a number here and text there."""
    same = (
        f"log.{sql.name(column)}::VARCHAR = {name}.elute_key_{number}::VARCHAR" for number, column in enumerate(columns)
    )
    return f"LEFT JOIN {name} ON {' AND '.join(same)}"


def _of_log(columns: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"log.{sql.name(column)}" for column in columns)


def _number(opened: Source, column: str) -> str:
    found = values.number(column, opened.types[column])
    if found is None:
        raise EluteError(f"{opened.label}: '{column}' holds {opened.types[column]} values where numbers are expected")
    return found

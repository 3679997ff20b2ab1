"""A log as the pages users saw: for every page the rows of a features table in the order shown, and the clicks.

DuckDB joins and sorts, so that ids stay there as text; what comes back is numbers, some rows at a time, about 20 bytes
an impression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.storage import MEMORY, Storage
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.engines.duckdb.filtering import prepare_rows
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting, values
from elute.errors import EluteError
from elute.io.features import Features

_SORTED = "1, 2, 4"
"""By page, place and document, so that the order does not depend on the scan."""

_ROWS = 1 << 18
"""Rows read at a time."""


class TrainingPages(NamedTuple):
    """Arrays (pages, places)."""

    documents: NDArray[np.int32]
    """Rows of the features; -1 after a page's last document."""
    clicks: NDArray[np.float32]
    factor: NDArray[np.int32]
    """Codes of the log's factors; 0 where there is no document."""
    scores: NDArray[np.float32] | None
    """What the logging policy ranked by."""


class PageColumns(NamedTuple):
    """What to read of a log."""

    roles: Roles
    """With a session."""
    position: str
    """The column that orders a page."""
    score: str | None
    whole: bool
    """Whether places must be positions: 1, 2, 3, … without gaps."""
    filters: Filters


def read_pages(
    source: object, asked: PageColumns, features: Features, factors: pa.Table, storage: Storage = MEMORY
) -> TrainingPages:
    """The pages of a log. A page is a session and, where there is one, a query."""
    opened = DuckDBSource(source)
    try:
        return _read(opened, _Query(opened, asked, features, factors), storage)
    finally:
        opened.close()


class _Query:
    """What DuckDB is asked."""

    def __init__(self, opened: DuckDBSource, asked: PageColumns, features: Features, factors: pa.Table) -> None:
        self.asked, self.features = asked, features
        self.key = features.key.column_names
        roles, session = asked.roles, str(asked.roles.session)
        wanted = tuple(dict.fromkeys((*roles.columns, *self.key, asked.position, *filter(None, (asked.score,)))))
        for column in wanted:
            if column not in opened.types:
                raise EluteError(f"{opened.label} has no column '{column}', by which {features.label} names documents")
        prepare_rows(opened, wanted, asked.filters, roles)
        opened.connection.register("elute_documents", _number_rows(features.key))
        opened.connection.register("elute_factors", _number_rows(factors))
        page = (session,) if roles.query is None else (session, roles.query)
        self._page = _qualify(page)
        self._where = quoting.where_clause(
            f"log.{quoting.name(column)} IS NOT NULL" for column in dict.fromkeys((*roles.ids, *self.key))
        )
        self.lost = f"SELECT count(*) FROM {opened.relation} WHERE {quoting.name(session)} IS NULL"
        self.shape = (
            "SELECT count(*), max(elute_length), count(DISTINCT elute_page) < count(*) FROM "
            f"(SELECT count(*) AS elute_length, hash({self._page}) AS elute_page "
            f"FROM {opened.relation} AS log {self._where} GROUP BY {self._page})"
        )
        self._columns = {
            "position": f"({cast_to_number(opened, asked.position)})::BIGINT",
            "click": f"({cast_to_number(opened, str(roles.click))})::UTINYINT",
            "document": "coalesce(elute_documents.elute_row, -1)",
            "factor": "coalesce(elute_factors.elute_row, -1)",
        }
        if asked.score is not None:
            self._columns["score"] = f"coalesce(({cast_to_number(opened, asked.score)})::FLOAT, 'nan'::FLOAT)"
        joins = f"{_join('elute_documents', self.key)} {_join('elute_factors', factors.column_names)}"
        self._joined = f"FROM {opened.relation} AS log {joins} {self._where}"
        self.unknown = (
            f"SELECT {_qualify(self.key)} FROM {opened.relation} AS log {_join('elute_documents', self.key)} "
            "WHERE elute_documents.elute_row IS NULL ORDER BY ALL LIMIT 1"
        )

    def read_rows(self, by_value: bool) -> str:
        """Page after page. `by_value`: two pages have one hash, so that hashes do not tell them apart."""
        page = f"dense_rank() OVER (ORDER BY {self._page})::UBIGINT" if by_value else f"hash({self._page})"
        columns = {"page": page, **self._columns}
        selected = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
        return f"SELECT {selected} {self._joined} ORDER BY {_SORTED}"


def _read(opened: DuckDBSource, query: _Query, storage: Storage) -> TrainingPages:
    """Fill the arrays, some rows at a time, and look for what cannot be used on the way."""
    with opened.translate_errors():
        nameless = opened.connection.execute(query.lost).fetchall()[0][0]
        pages, longest, collide = opened.connection.execute(query.shape).fetchall()[0]
    if nameless:
        session = query.asked.roles.session
        raise EluteError(f"{opened.label}: '{session}' is null in {nameless:,} rows, which then belong to no page")
    if not pages:
        raise EluteError(f"{opened.label} has no row that names a document by {', '.join(query.key)}")
    shape, scored = (pages, longest), query.asked.score is not None
    found = TrainingPages(
        storage.new_array("documents", shape, np.int32),
        storage.new_array("clicks", shape, np.float32),
        storage.new_array("factors", shape, np.int32),
        storage.new_array("scores", shape, np.float32) if scored else None,
    )
    for array, nothing in zip(found, (-1, 0, 0, 0), strict=True):
        if array is not None:
            array[...] = nothing
    flaws = _Flaws()
    with opened.translate_errors():
        reader = opened.connection.sql(query.read_rows(by_value=bool(collide))).to_arrow_reader(_ROWS)
        for page, place, rows in _number_places(reader):
            flaws.add(rows, page, place)
            found.documents[page, place] = rows["document"]
            found.clicks[page, place] = rows["click"]
            found.factor[page, place] = rows["factor"]
            if found.scores is not None:
                found.scores[page, place] = rows["score"]
    flaws.refuse(opened, query, pages)
    return found


def _number_places(
    reader: pa.RecordBatchReader,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], dict[str, Any]]]:
    """Some rows at a time with the number of their page and their place on it, both from 0."""
    pages, length, last = 0, 0, None
    for batch in reader:
        if not len(batch):
            continue
        rows = {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}
        rows["missing"] = batch["position"].null_count
        ids = rows["page"]
        begins = np.concatenate(([ids[0] != last], ids[1:] != ids[:-1]))
        page = np.cumsum(begins) + (pages - 1)
        first = np.where(begins, np.arange(len(ids)), -length)
        place = np.arange(len(ids)) - np.maximum.accumulate(first)
        pages, length, last = int(page[-1]) + 1, int(place[-1]) + 1, ids[-1]
        yield page, place, rows


class _Flaws:
    """Rows that cannot be used, and pages whose places are not positions."""

    def __init__(self) -> None:
        self._rows = self._nameless = self._strange = self._unscored = 0
        self._lowest = np.inf
        self._off = {0: 0, 1: 0}
        """How many pages do not count from 0, and from 1."""
        self._last = {0: -1, 1: -1}
        """The last of these: a page may go on in the next rows."""

    def add(self, rows: dict[str, Any], page: NDArray[np.int64], place: NDArray[np.int64]) -> None:
        """Look at some rows."""
        self._rows += len(page)
        self._nameless += int((rows["document"] < 0).sum())
        self._strange += int((rows["factor"] < 0).sum()) + rows["missing"]
        self._unscored += int((~np.isfinite(rows["score"])).sum()) if "score" in rows else 0
        if not rows["missing"]:
            self._lowest = min(self._lowest, rows["position"].min())
            for start in self._off:
                off = np.unique(page[rows["position"] != place + start])
                if len(off):
                    self._off[start] += len(off) - int(off[0] == self._last[start])
                    self._last[start] = int(off[-1])

    def refuse(self, opened: DuckDBSource, query: _Query, pages: int) -> None:
        """Raise the first that there is."""
        asked = query.asked
        if self._nameless:
            with opened.translate_errors():
                names = opened.connection.execute(query.unknown).fetchall()[0]
            first = ", ".join(f"{column} {name}" for column, name in zip(query.key, names, strict=True))
            raise EluteError(
                f"{self._nameless:,} of {self._rows:,} impressions show documents without features in "
                f"{query.features.label} ({first}); add them, or leave their pages out of the log"
            )
        if self._strange:
            columns = ", ".join((*asked.roles.bias, asked.position))
            raise EluteError(f"{opened.label}: {columns} cannot be read as factors and places; write places as numbers")
        if self._unscored:
            where = f"'{asked.score}' is not a finite number in {self._unscored:,} rows"
            raise EluteError(f"{opened.label}: {where}; leave their pages out")
        off = self._off[0 if self._lowest == 0 else 1]
        if asked.whole and off:
            raise EluteError(
                f"{opened.label}: on {off:,} of {pages:,} pages '{asked.position}' does not count from 1 without gaps; "
                "leave these pages out, or use a learner that does not need whole pages: naive, ipw, ipw-random, elute"
            )


def _number_rows(table: pa.Table) -> pa.Table:
    """The columns under names of our own, with a row number."""
    renamed = table.rename_columns([f"elute_key_{number}" for number in range(table.num_columns)])
    return renamed.append_column("elute_row", pa.array(np.arange(table.num_rows, dtype=np.int32)))


def _join(name: str, columns: list[str]) -> str:
    """By value, whatever the types: an id may be a number here and text there."""
    same = (
        f"log.{quoting.name(column)}::VARCHAR = {name}.elute_key_{number}::VARCHAR"
        for number, column in enumerate(columns)
    )
    return f"LEFT JOIN {name} ON {' AND '.join(same)}"


def _qualify(columns: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"log.{quoting.name(column)}" for column in columns)


def cast_to_number(opened: DuckDBSource, column: str) -> str:
    """SQL for a column of `log` as a number."""
    found = values.number_sql(column, opened.types[column])
    if found is None:
        raise EluteError(f"{opened.label}: '{column}' has {opened.types[column]} values where numbers are expected")
    return found

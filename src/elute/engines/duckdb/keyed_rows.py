"""A log's rows as keys: each has 64 bits that stand for its item and for its query, and its factor's code. Ranges of
rows are read side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from elute._util.arrow import view
from elute._util.threads import map_threads
from elute.cells.roles import Roles
from elute.cells.survey import Survey
from elute.engines.counter import Counter, RowBatch
from elute.engines.duckdb.factor_codes import FactorCodes, by_grid, by_key
from elute.engines.duckdb.id_columns import ExactIdReader, HashedIdReader, IdReader
from elute.engines.duckdb.item_names import NameKeeper
from elute.engines.duckdb.source import Cursor, DuckDBSource
from elute.engines.id_keys import IdHash, KeyRoom
from elute.engines.sql import quoting, values
from elute.progress import Progress

BATCH_ROWS = 1 << 17
"""Rows that DuckDB hands over at a time: more do not stay in the cache until they are put aside; with fewer, those of a
partition lie in shorter runs."""

SAMPLED = 100_000
"""Rows that say how long ids are."""


class _Reading(NamedTuple):
    """What to select of rows, and how to take what comes: the same for all ranges. `amounts`: SQL by name."""

    amounts: dict[str, str]
    factors: FactorCodes
    ids: IdReader
    names: NameKeeper | None
    conditions: str
    batch_rows: int


class KeyedRows:
    """What an engine reads of a source. `exact`: keys are numbers of the values, from tables that are joined."""

    _on_their_way = 1 << 28
    """Bytes of rows that DuckDB hands over at a time, about."""

    _by_item = False
    """Whether items of a query may lie in several partitions."""

    def __init__(self, source: DuckDBSource, exact: bool) -> None:
        self._source = source
        self._exact = exact
        self._hash = IdHash()
        self._id_bytes: int | None = None

    def _store_rows(
        self,
        roles: Roles,
        survey: Survey,
        progress: Progress,
        structure_only: bool = False,
        names: NameKeeper | None = None,
    ) -> Counter:
        """All rows, read in ranges on all cores. `names`: keeps those of items."""
        stored = replace(roles, query=None, click=None, impressions=None) if structure_only else roles
        counter = Counter(stored, len(survey.keys), survey.usable, int(survey.impressions.sum()), keep_queries=False)
        with self._source.split(whole=self._exact) as cursors:  # exact keys come from joins, which DuckDB does once
            if len(cursors) == 1:
                for batch in self._read_batches(roles, survey, progress, structure_only, names):
                    counter.add(batch)
                return counter
            done = [0] * len(cursors)
            interrupted = threading.Event()
            reading = self._plan_reading(roles, survey, structure_only, names, KeyRoom())

            def read(number: int) -> None:
                for place, batch in enumerate(self._read_cursor(cursors[number], reading)):
                    if interrupted.is_set():
                        return
                    counter.add(batch, (number, place))
                    done[number] += len(batch.item)

            map_threads(
                read,
                range(len(cursors)),
                len(cursors),
                lambda: progress("reading the log", sum(done), survey.usable),
                interrupted,
            )
        return counter

    def _read_batches(
        self,
        roles: Roles,
        survey: Survey,
        progress: Progress,
        structure_only: bool = False,
        names: NameKeeper | None = None,
    ) -> Iterator[RowBatch]:
        """The usable rows as keys and counts, in the order of the log."""
        done = 0
        whole = Cursor(self._source.connection, self._keyed_relation)
        for batch in self._read_cursor(whole, self._plan_reading(roles, survey, structure_only, names)):
            progress("reading the log", done, survey.usable)
            yield batch
            done += len(batch.item)

    def _plan_reading(
        self, roles: Roles, survey: Survey, structure_only: bool, names: NameKeeper | None, room: KeyRoom | None = None
    ) -> _Reading:
        """`room`: where keys may lie, if a batch is done with before the next comes."""
        amounts: dict[str, str] = {}
        if not structure_only:
            kind = "UTINYINT" if roles.impressions is None else "BIGINT"
            amounts["clicks"] = values.clicks_sql(roles, self._source.types, kind)
            if roles.impressions is not None:
                amounts["impressions"] = f"({values.impressions_sql(roles, self._source.types)})::BIGINT"
        return _Reading(
            amounts,
            self._code_factors(roles, survey),
            self._read_ids(roles, room),
            names,
            quoting.where_clause(self._usable_conditions(roles, survey.nulls)),
            self._batch_rows(roles, BATCH_ROWS),
        )

    def _read_cursor(self, cursor: Cursor, reading: _Reading) -> Iterator[RowBatch]:
        amounts, factors, ids, names = reading.amounts, reading.factors, reading.ids, reading.names
        clicks = np.int64 if "impressions" in amounts else np.uint8
        kinds: dict[str, DTypeLike] = {"clicks": clicks, "impressions": np.int64}
        first = len(amounts) + len(factors.sql)
        last = first + len(ids.sql)
        selected = ", ".join((*amounts.values(), *factors.sql, *ids.sql, *(names.sql if names else ())))
        with self._source.translate_errors():
            rows = cursor.connection.sql(f"SELECT {selected} FROM {cursor.relation} {reading.conditions}")
            for batch in rows.to_arrow_reader(reading.batch_rows):
                found = {name: view(column, kinds[name]) for name, column in zip(amounts, batch.columns, strict=False)}
                own = ids.read(batch.columns[first:last])
                if names is not None:
                    names.keep(own.item, batch.columns[first:])
                factor = factors.find(batch.columns[len(amounts) : first])
                yield RowBatch(own.item, factor, own.query, places=own.places, **found)

    def _read_ids(self, roles: Roles, room: KeyRoom | None = None) -> IdReader:
        if self._exact:
            return ExactIdReader(roles, self._by_item)
        return HashedIdReader(roles, self._source.types, self._hash, self._by_item, room)

    def _read_item_ids(self, roles: Roles) -> IdReader:
        """Where a query would be read for its own sake, it is not."""
        return self._read_ids(roles if roles.items_within_queries else replace(roles, query=None))

    def _batch_rows(self, roles: Roles, most: int) -> int:
        """Fewer where ids are long."""
        return max(2048, min(most, self._on_their_way // self._mean_id_bytes(roles)))

    def _mean_id_bytes(self, roles: Roles) -> int:
        """Of an item's columns, on average, by a look at some rows."""
        if self._id_bytes is None:
            text = [quoting.name(column) for column in roles.item if self._source.types[column] == "VARCHAR"]
            self._id_bytes = 8 * len(roles.item)
            if text:
                sizes = " + ".join(f"coalesce(avg(strlen({column})), 0)" for column in text)
                some = f"SELECT {', '.join(text)} FROM {self._source.relation} LIMIT {SAMPLED}"
                self._id_bytes += int(self._source.query_row(f"SELECT ({sizes})::BIGINT FROM ({some})")[0])
        return self._id_bytes

    def _code_factors(self, roles: Roles, survey: Survey) -> FactorCodes:
        grid = None if self._exact or self._source.untyped else by_grid(survey.factors)
        return grid or by_key(self._factor_sql(roles.bias), survey.keys)

    def _usable_conditions(self, roles: Roles, nulls: dict[str, int]) -> list[str]:
        """Conditions on the rows that count: only those that some row fails, since each costs a scan."""
        conditions = [f"{quoting.name(column)} IS NOT NULL" for column in nulls]
        if roles.impressions is not None:
            conditions.append(f"{values.impressions_sql(roles, self._source.types)} > 0")
        return conditions

    def _factor_sql(self, columns: tuple[str, ...]) -> str:
        """Factors are compared by value: where two share a hash, ids are exact."""
        return "elute_factor_key" if self._exact else f"hash({quoting.names(columns)})"

    @property
    def _keyed_relation(self) -> str:
        """The relation whose rows have keys."""
        return "elute_log" if self._exact else self._source.relation

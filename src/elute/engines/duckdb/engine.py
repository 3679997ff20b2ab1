"""The embedded engine: DuckDB scans and hashes, compiled kernels count and connect.

Each row's ids become 64-bit keys (`elute.engines.id_keys`); kernels turn those into dense codes. Two different items
may share a key: the probability is at most n(n − 1) / 2⁶⁵ for n items, whatever their ids, is reported with every
result, and is 0 with `exact`, where DuckDB numbers the items by their values instead. Factors are few, so their hashes
are compared by value every time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute._util.arrow import take_rows, view
from elute.cells.counts import Clustered, Counts
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.cells.survey import Survey
from elute.engines.counter import index_keys
from elute.engines.duckdb.exact_ids import number_ids
from elute.engines.duckdb.examples import find_least
from elute.engines.duckdb.filtering import merge_equal_floats, prepare_rows
from elute.engines.duckdb.item_names import NameKeeper, read_names
from elute.engines.duckdb.keyed_rows import KeyedRows
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.pieces import Keys
from elute.engines.source_state import State
from elute.engines.sql import quoting, values
from elute.engines.sql.factor_names import numbers_from_text
from elute.errors import EluteError
from elute.kernels.connector import Connector
from elute.progress import Progress

LOOKED_AT = 2_000_000
"""Rows that a search for connectivity begins with: most logs that are connected are after that many."""

ROWS_AN_ITEM = 16
"""A guess, to spare the table of items most of its growth; a wrong one costs time, nothing else."""


class Weighed(NamedTuple):
    """A sum over all rows, over those without a null in some columns, and over those with one in each."""

    rows: int
    complete: int
    nulls: dict[str, int]


class DuckDBEngine(KeyedRows):
    """A log in files, in a DuckDB table or in memory."""

    def __init__(
        self, source: object, exact: bool = False, label: str = "the table", spill: str | Path | None = None
    ) -> None:
        """`spill`: the folder for what does not fit into memory; the system's own otherwise."""
        super().__init__(DuckDBSource(source, label, spill), exact)
        self._filters = Filters()
        self._rows_before: int | None = None
        self.label = self._source.label

    @property
    def exact(self) -> bool:
        return self._exact

    @property
    def columns(self) -> list[str]:
        return list(self._source.types)

    @property
    def state(self) -> list[State]:
        return self._source.state

    @property
    def rows_in_files(self) -> int:
        """As far as files say how many rows they have: those of Parquet do."""
        return self._source.rows_in_files

    def close(self) -> None:
        self._source.close()

    def filter(self, filters: Filters, roles: Roles) -> None:
        self._filters = filters
        self._rows_before = prepare_rows(self._source, roles.columns, filters, roles)

    def find_problems(self, roles: Roles) -> list[str]:
        """Values of clicks and impressions that cannot be used, each with its rows and an example."""
        self._source.prepare([column for column in roles.columns if column in self._source.types])
        merge_equal_floats(self._source, [column for column in roles.ids if column in self._source.types])
        nested = values.list_nested_ids(roles, self._source.types)
        plain = values.quick_check_sql(roles, self._source.types)
        if plain and self._source.query_row(f"SELECT {plain} FROM {self._source.relation}")[0]:
            return nested
        flaws, found = values.list_flaws(roles, self._source.types)
        found += nested
        if flaws:
            counted = ", ".join(
                f"count_if({flaw.condition}), min({quoting.name(flaw.column)}) FILTER (WHERE {flaw.condition})"
                for flaw in flaws
            )
            row = self._source.query_row(f"SELECT {counted} FROM {self._source.relation}")
            for flaw, rows, example in zip(flaws, row[::2], row[1::2], strict=True):
                if rows:
                    shown = "" if example is None else f", for instance {example!r}"
                    found.append(
                        f"column '{flaw.column}' {flaw.message} in {rows:,} {'row' if rows == 1 else 'rows'}{shown}"
                    )
        return found

    def survey(self, roles: Roles) -> Survey:
        """Rows, nulls and factors, in two scans that read few columns."""
        present = ", ".join(f"count({quoting.name(column)})" for column in roles.ids)
        rows, *filled = self._source.query_row(f"SELECT count(*), {present} FROM {self._source.relation}")
        if not rows:
            raise self._filters.refuse_empty(self.label)
        nulls = {column: rows - n for column, n in zip(roles.ids, filled, strict=True) if n < rows}
        table = self._make_factor_table(roles, nulls)
        if not table.num_rows:
            why = ", ".join(f"'{column}' is null in {n:,}" for column, n in nulls.items()) or "no impressions"
            raise EluteError(f"{self.label} has no usable row: of {rows:,} rows, {why}")
        usable = pc.sum(table["elute_rows"]).as_py()
        unshown = 0
        if roles.impressions is not None:
            complete = quoting.where_clause(f"{quoting.name(column)} IS NOT NULL" for column in nulls)
            unshown = self._source.query_row(f"SELECT count(*) FROM {self._source.relation} {complete}")[0] - usable
        if self._exact:
            number_ids(self._source, roles, quoting.where_clause(self._usable_conditions(roles, nulls)))
        return Survey(
            rows=rows,
            usable=usable,
            unshown=unshown,
            nulls=nulls,
            factors=table.select(list(roles.bias)),
            rows_under=table["elute_rows"].to_numpy(),
            keys=table["elute_factor_key"].to_numpy(),
            impressions=table["elute_shown"].to_numpy(),
            clicks=table["elute_clicked"].to_numpy(),
            filtered=0 if self._rows_before is None else self._rows_before - rows,
        )

    def sum_by_nulls(self, weight: str, columns: Sequence[str]) -> Weighed:
        """What a column adds up to, where rows stand for others."""
        named = [quoting.name(column) for column in columns]
        missing = [f"sum({quoting.name(weight)}) FILTER ({name} IS NULL)" for name in named]
        full = f"sum({quoting.name(weight)}) FILTER ({' AND '.join(f'{name} IS NOT NULL' for name in named)})"
        sums = ", ".join(f"coalesce({one}, 0)::BIGINT" for one in (f"sum({quoting.name(weight)})", full, *missing))
        rows, complete, *nulls = self._source.query_row(f"SELECT {sums} FROM {self._source.relation}")
        return Weighed(rows, complete, {column: n for column, n in zip(columns, nulls, strict=True) if n})

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        """Over the bipartite graph of items and factors. First the beginning of the log, streamed: once all factors are
        one component, no further row can part them."""
        connector = Connector(len(survey.keys), LOOKED_AT // ROWS_AN_ITEM)
        seen = 0
        for batch in self._read_batches(roles, survey, progress, structure_only=True):
            connector.add(batch.item, batch.factor)
            seen += len(batch.item)
            if connector.components == 1 or seen == survey.usable:
                return connector.roots()
            if seen >= LOOKED_AT:
                break
        return self._store_rows(roles, survey, progress, structure_only=True).connect()

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        """One pass over the log; `elute.engines.counter` says how cells are summed."""
        keeper = NameKeeper(roles.item, self._read_ids(roles).sql, survey.usable) if names and not self._exact else None
        counter = self._store_rows(roles, survey, progress, names=keeper)
        progress("counting cells", 0, 0)
        counted = counter.finish()
        items = counted.items
        named = keeper and keeper.arrange(items)
        return Counts(
            offsets=counted.offsets,
            factor=counted.factor,
            impressions=counted.impressions,
            clicks=counted.clicks,
            factors=survey.factors,
            membership=counted.membership,
            collision_bound=0.0 if self._exact else len(items) * (len(items) - 1) / 2**65,
            read_items=lambda: named or self._read_item_table(roles, survey, items),
            read_clusters=lambda column: self._read_clusters(roles, survey, items, column),
        )

    def count_repeats_on_page(self, roles: Roles) -> int:
        """A page is a session and, where there is one, a query. Hashed with a number that is drawn for each run: ids
        cannot be made up to look like repeats."""
        if roles.session is None:
            return 0
        page = dict.fromkeys((roles.session, *((roles.query,) if roles.query else ()), *roles.item))
        rows = self._source.query_row(
            f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM (SELECT count(*) AS n FROM {self._source.relation} "
            f"{quoting.where_clause(f'{quoting.name(c)} IS NOT NULL' for c in page)} "
            f"GROUP BY hash({secrets.randbits(63)}, {quoting.names(page)}))"
        )
        return int(rows[0])

    def find_busiest_query(self, roles: Roles) -> object:
        """Only asked for where one query dominates, so that a scan finds it."""
        query, shown = quoting.names((roles.query or "",)), values.impressions_sql(roles, self._source.types)
        usable = quoting.where_clause([f"{quoting.name(column)} IS NOT NULL" for column in roles.ids])
        top = f"SELECT {query} FROM {self._source.relation} {usable} GROUP BY {query}"
        return self._source.query_row(f"{top} ORDER BY sum({shown}) DESC, {query} LIMIT 1")[0]

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        """The smallest items under each factor, so that the answer does not depend on the scan's order."""
        keys = {int(survey.keys[factor]): factor for factor in factors}
        wanted = ", ".join(f"{key}::UBIGINT" for key in keys)
        conditions = [
            *self._usable_conditions(roles, survey.nulls),
            *self._bound_values(survey.factors.take(pa.array(factors))),
            f"{self._factor_sql(roles.bias)} IN ({wanted})",
        ]
        found = find_least(
            self._source,
            self._keyed_relation,
            self._factor_sql(roles.bias),
            roles.item,
            conditions,
            each,
            len(keys),
            int(survey.rows_under[factors].sum()),
        )
        names = found.drop_columns("elute_key")
        return {
            factor: names.filter(pc.equal(found["elute_key"], pa.scalar(key, pa.uint64())))
            for key, factor in keys.items()
        }

    def _bound_values(self, factors: pa.Table) -> Iterator[str]:
        """Conditions that rows of these factors meet: of what lies outside, DuckDB decodes no other column."""
        for column in factors.column_names:
            if pa.types.is_integer(factors[column].type) and not self._source.untyped:
                ends = pc.min_max(factors[column]).as_py()
                yield f"{quoting.name(column)} BETWEEN {ends['min']} AND {ends['max']}"

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        """Text that is no number counts as missing."""
        number = values.number_sql(value, self._source.types[value])
        if number is None:
            raise EluteError(f"column '{value}' holds {self._source.types[value]} values where numbers are expected")
        return self._source.query_table(
            f"SELECT {quoting.names(columns)}, avg({number})::DOUBLE AS {quoting.name(value)} "
            f"FROM {self._source.full_relation} GROUP BY {quoting.names(columns)}"
        )

    def _make_factor_table(self, roles: Roles, nulls: dict[str, int]) -> pa.Table:
        """Factors in rising order with their keys and totals; also kept as a table for exact joins."""
        key = "row_number() OVER ()" if self._exact else f"hash({quoting.names(roles.bias)})"
        clicked = values.clicks_sql(roles, self._source.types)
        shown = "count(*)" if roles.impressions is None else f"sum({values.impressions_sql(roles, self._source.types)})"
        self._source.execute(
            f"CREATE OR REPLACE TEMP TABLE elute_factor AS SELECT {quoting.names(roles.bias)}, "
            f"({key})::UBIGINT AS elute_factor_key, count(*) AS elute_rows, {shown}::BIGINT AS elute_shown, "
            f"sum({clicked})::BIGINT AS elute_clicked FROM {self._source.relation} "
            f"{quoting.where_clause(self._usable_conditions(roles, nulls))} GROUP BY {quoting.names(roles.bias)}"
        )
        table = self._source.query_table(f"SELECT * FROM elute_factor ORDER BY {quoting.names(roles.bias)}")
        if pc.count_distinct(table["elute_factor_key"]).as_py() < table.num_rows:
            self._exact = True  # two factors share a hash: number them by value instead
            return self._make_factor_table(roles, nulls)
        return numbers_from_text(table, roles.bias) if self._source.untyped else table

    def _read_item_table(self, roles: Roles, survey: Survey, items: Keys) -> pa.Table:
        """The items' columns in the order of their codes."""
        if not self._exact:
            conditions = quoting.where_clause(self._usable_conditions(roles, survey.nulls))
            return read_names(self._source, self._read_item_ids(roles), roles.item, conditions, items)
        table = self._source.query_table(f"SELECT elute_item_key, {quoting.names(roles.item)} FROM elute_item")
        row_of = np.empty(len(items), np.int64)
        row_of[index_keys(items).find(view(table["elute_item_key"].combine_chunks(), np.uint64))] = np.arange(
            len(items)
        )
        return take_rows(table.drop_columns("elute_item_key"), row_of)

    def _read_clusters(self, roles: Roles, survey: Survey, items: Keys, column: str) -> Clustered:
        """Cells by the values of a column."""
        if column not in self.columns:
            raise EluteError(f"{self.label} has no column '{column}' to cluster by")
        total = "count(*)" if roles.impressions is None else f"sum({values.impressions_sql(roles, self._source.types)})"
        ids = self._read_item_ids(roles)
        columns = ", ".join(f"{one} AS elute_id_{place}" for place, one in enumerate(ids.sql))
        table = self._source.query_table(
            f"SELECT {quoting.name(column)} AS elute_cluster, {columns}, "
            f"{self._factor_sql(roles.bias)} AS elute_factor, ({total})::BIGINT AS elute_shown, "
            f"sum({values.clicks_sql(roles, self._source.types)})::BIGINT AS elute_clicked FROM {self._keyed_relation} "
            f"{quoting.where_clause(self._usable_conditions(roles, survey.nulls))} GROUP BY ALL"
        )
        known = index_keys(items)
        named = table.select([f"elute_id_{place}" for place in range(len(ids.sql))]).to_batches()
        item = np.concatenate([known.find(ids.read(batch.columns).item) for batch in named] or [np.empty(0, np.int32)])
        factor = index_keys(survey.keys).find(table["elute_factor"].to_numpy())
        return Clustered.from_table(table, "elute_cluster", item, factor)

"""Queries whose items lie in several partitions: rows of every partition, put together by DuckDB, which spills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, cast

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.rankable import Rankable
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.counting import QueryRows
from elute.engines.pieces import Keys
from elute.progress import Progress

Guard = Callable[[], AbstractContextManager[None]]


class QueryTable:
    """For every query, partition and tree of its forest: items and impressions."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, guard: Guard) -> None:
        """`guard`: turns what DuckDB says into an error of elute's."""
        self._connection, self._guard = connection, guard
        self._run(
            "CREATE OR REPLACE TEMP TABLE elute_query_rows (query UBIGINT, root INTEGER, items BIGINT, shown BIGINT)"
        )

    def add(self, keys: Keys, rows: QueryRows) -> None:
        """The rows of a partition; `keys`: of their queries, the same in all partitions."""
        table = pa.table({"q": keys, "r": rows.root, "i": rows.items, "s": rows.impressions})
        self._insert("elute_query_rows", table)

    def size(self) -> tuple[int, int]:
        """Queries, and the impressions of the one that has most."""
        by_query = "SELECT sum(shown) AS shown FROM elute_query_rows GROUP BY query"
        queries, most = self._run(f"SELECT count(*), coalesce(max(shown), 0)::BIGINT FROM ({by_query})")
        return queries, most

    def count_rankable(self, component: NDArray[np.int32]) -> Rankable:
        """Where `component` is that of every factor."""
        self._run("CREATE OR REPLACE TEMP TABLE elute_component (factor INTEGER, component INTEGER)")
        known = pa.table({"f": np.arange(len(component), dtype=np.int32), "c": component})
        self._insert("elute_component", known)
        parts = (
            "SELECT query, component, sum(items)::BIGINT AS n FROM elute_query_rows "
            "JOIN elute_component ON root = factor GROUP BY query, component"
        )
        each = (
            "SELECT count(*) AS parts, sum(n)::BIGINT AS n, sum(n * (n - 1) // 2)::BIGINT AS alike "
            f"FROM ({parts}) GROUP BY query"
        )
        n, ranked, pairs, alike = self._run(
            f"SELECT count(*), count_if(parts = 1), sum(n * (n - 1) // 2)::BIGINT, sum(alike)::BIGINT FROM ({each})"
        )
        return Rankable(n, ranked, alike / pairs if pairs else 1.0)

    def _insert(self, table: str, rows: pa.Table) -> None:
        self._connection.register("elute_more", rows)
        self._run(f"INSERT INTO {table} SELECT * FROM elute_more")
        self._connection.unregister("elute_more")

    def _run(self, query: str) -> Any:
        """The first row of the answer."""
        with self._guard():
            return next(iter(self._connection.execute(query).fetchall()), None)


class QueryKeeper(ABC):
    """An engine whose `structure` keeps the queries' rows, from which it then tells which can be ranked."""

    _queries: QueryTable | None = None

    @abstractmethod
    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """Fills `_queries`."""

    def count_rankable(
        self, roles: Roles, survey: Survey, component: NDArray[np.int32], components: int, progress: Progress
    ) -> Rankable:
        """Rankable queries where `component` is that of every factor."""
        if self._queries is None:
            self.structure(roles, survey, progress)
        return cast(QueryTable, self._queries).count_rankable(component)

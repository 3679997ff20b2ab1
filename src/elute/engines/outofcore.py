"""The embedded engine under a memory limit.

Items are counted in several passes over the log, each of the items whose hash falls into its share; what a check needs
of a share is small and is merged (`elute.kernels.forest`). For a fit, the cells of each share are appended to files
that are then mapped into memory, so that the system may drop pages of them. DuckDB keeps to its own part of the limit
and spills to the same folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.counts import Counts, Membership, sums_by_item
from elute.engines.counting import Counted, Counter, coded, summary
from elute.engines.duckdb import DuckDBEngine
from elute.errors import EluteError
from elute.kernels.forest import edges, merged
from elute.kernels.keys import KeyTable
from elute.kernels.unionfind import singletons
from elute.progress import Progress
from elute.rankable import Rankable
from elute.roles import Roles
from elute.structure import Structure
from elute.survey import Survey

BYTES_A_ROW = 96
"""Of a pass, at worst: a cell a row, twice during a merge, its buffer, and an item's place in the table of keys."""

LEAST = 256 << 20
"""Bytes below which no limit can be kept: the libraries alone take as much."""


class OutOfCoreEngine(DuckDBEngine):
    """A log in files or in a DuckDB table, read with less memory than its cells would take."""

    def __init__(self, source: object, exact: bool, memory: int, spill: str | Path | None = None) -> None:
        if memory < LEAST:
            raise EluteError(f"--memory {memory / 2**20:.0f}MB is too little; give at least {LEAST >> 20}MB")
        super().__init__(source, exact, spill=spill)
        self._share = memory // 3
        """Bytes for the cells of a pass; DuckDB has a third, and a third is left for the rest."""
        self._execute(f"SET memory_limit = '{memory // 3 // 2**20}MiB'")
        self._execute("SET preserve_insertion_order = false")

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """The forests of all passes in one, and the sums of their totals."""
        n = len(survey.keys)
        root, under, inside, once = singletons(n), np.zeros(n, np.int64), np.zeros(n, np.int64), 0
        self._execute(
            "CREATE OR REPLACE TEMP TABLE elute_query_rows (query UBIGINT, root INTEGER, items BIGINT, shown BIGINT)"
        )
        for counter, counted in self._passes(roles, survey, progress):
            found = summary(counted, n)
            root = merged(root, edges(found.root))
            under += found.items_under
            inside += found.items_in
            once += found.items_once
            if found.queries is not None:
                query, tree, items, shown = found.queries
                rows = pa.table({"q": counter.queries.keys()[query], "r": tree, "i": items, "s": shown})
                self._insert("elute_query_rows", rows)
        items_in = np.bincount(root, weights=inside, minlength=n).astype(np.int64)
        total = int(items_in.sum())
        queries, busiest = None, 0
        if roles.query is not None:
            by_query = "SELECT sum(shown) AS shown FROM elute_query_rows GROUP BY query"
            queries, busiest = self._row(f"SELECT count(*), max(shown)::BIGINT FROM ({by_query})")
        bound = 0.0 if self._exact else total * (total - 1) / 2**65
        return Structure(root, under, items_in, once, queries, busiest, bound)

    def rankable(
        self, roles: Roles, survey: Survey, component: NDArray[np.int32], components: int, progress: Progress
    ) -> Rankable:
        """From the queries' rows that `structure` kept."""
        known = pa.table({"f": np.arange(len(component), dtype=np.int32), "c": component})
        self._execute("CREATE OR REPLACE TEMP TABLE elute_component (factor INTEGER, component INTEGER)")
        self._insert("elute_component", known)
        parts = (
            "SELECT query, component, sum(items)::BIGINT AS n FROM elute_query_rows "
            "JOIN elute_component ON root = factor GROUP BY query, component"
        )
        each = (
            "SELECT count(*) AS parts, sum(n)::BIGINT AS n, sum(n * (n - 1) // 2)::BIGINT AS alike "
            f"FROM ({parts}) GROUP BY query"
        )
        n, ranked, pairs, alike = self._row(
            f"SELECT count(*), count_if(parts = 1), sum(n * (n - 1) // 2)::BIGINT, sum(alike)::BIGINT FROM ({each})"
        )
        return Rankable(n, ranked, alike / pairs if pairs else 1.0)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        """As part of the structure, which keeps to the limit."""
        return self.structure(roles, survey, progress).root

    def count(self, roles: Roles, survey: Survey, progress: Progress) -> Counts:
        """The cells in files of the scratch folder, mapped into memory."""
        wide = np.dtype(np.uint32 if survey.impressions.sum() < 1 << 32 else np.uint64)
        kept = {name: _Column(self._source.scratch / name, dtype) for name, dtype in _columns(wide).items()}
        queries = KeyTable()
        for counter, counted in self._passes(roles, survey, progress):
            first = len(kept["item"])
            kept["cells"].add(np.diff(counted.offsets))
            kept["item"].add(counter.items.keys())
            for name in ("factor", "impressions", "clicks"):
                kept[name].add(getattr(counted, name))
            if counted.membership is not None:
                kept["query"].add(queries.insert(counter.queries.keys())[0][counted.membership.query])
                kept["member"].add(counted.membership.item + np.int32(first))
                kept["shown"].add(counted.membership.impressions)
        arrays = {name: column.mapped() for name, column in kept.items()}
        offsets = np.concatenate(([0], np.cumsum(arrays["cells"], dtype=np.int64)))
        items = arrays["item"]
        membership = None
        if roles.query is not None:
            shown = arrays["shown"] if len(arrays["shown"]) else sums_by_item(offsets, arrays["impressions"])
            membership = Membership(len(queries), arrays["query"], arrays["member"], shown)
        return Counts(
            offsets=offsets,
            factor=arrays["factor"],
            impressions=arrays["impressions"],
            clicks=arrays["clicks"],
            factors=survey.factors,
            membership=membership,
            collision_bound=0.0 if self._exact else len(items) * (len(items) - 1) / 2**65,
            read_items=lambda: self._item_table(roles, survey, coded(items)),
            read_clusters=lambda column: self._clusters(roles, survey, coded(items), coded(survey.keys), column),
        )

    def _passes(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[tuple[Counter, Counted]]:
        """The counter of every pass and what it counted."""
        passes = max(1, -(-survey.usable * BYTES_A_ROW // self._share))
        total = int(survey.impressions.sum())
        for number in range(passes):
            counter = Counter(roles, survey.keys, survey.usable, total, passes)
            share = f"(hash({self._key('item', roles.item)}) >> 32) % {passes} = {number}"
            for batch in self._batches(roles, survey, progress, only=share if passes > 1 else None):
                counter.add(batch)
            progress(f"counting, pass {number + 1} of {passes}", number, passes)
            yield counter, counter.finish()

    def _insert(self, table: str, rows: pa.Table) -> None:
        with self._source.reading():
            self._source.connection.register("elute_more", rows)
            self._source.connection.execute(f"INSERT INTO {table} SELECT * FROM elute_more")
            self._source.connection.unregister("elute_more")


class _Column:
    """An array that grows on disk."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path, self._dtype, self._length = path, dtype, 0
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self._length

    def add(self, values: NDArray[Any]) -> None:
        with self._path.open("ab") as file:
            values.astype(self._dtype, copy=False).tofile(file)
        self._length += len(values)

    def mapped(self) -> NDArray[Any]:
        """Copy on write, so that kernels see an array like any other."""
        if not self._length:
            return np.empty(0, self._dtype)
        return np.asarray(np.memmap(self._path, self._dtype, mode="c"))


def _columns(wide: np.dtype[Any]) -> dict[str, np.dtype[Any]]:
    narrow, long = np.dtype(np.int32), np.dtype(np.int64)
    return {
        "cells": narrow,
        "item": np.dtype(np.uint64),
        "factor": narrow,
        "impressions": wide,
        "clicks": wide,
        "query": narrow,
        "member": narrow,
        "shown": long,
    }

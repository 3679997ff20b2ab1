"""Cells that a warehouse counted, in the place of their log: a log of rows that are counts, which the embedded engine
adds up, and what is known of the rows behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util import scratch
from elute.cells.chunks import Chunk, chunks_from_counts
from elute.cells.counts import Counts
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.cells.survey import Survey
from elute.engines.base import Chunked
from elute.engines.counts_folder.engine import compare_roles
from elute.engines.duckdb.engine import DuckDBEngine
from elute.engines.duckdb.local_files import LocalFiles
from elute.engines.partitioned.choice import open_embedded
from elute.engines.source_state import State
from elute.engines.warehouse import layout
from elute.engines.warehouse.cells_files import CellsFiles, NameRoles, read_cells_files
from elute.errors import EluteError
from elute.progress import Progress


class CellsEngine:
    """Answers what a counts folder is made of."""

    def __init__(
        self,
        paths: list[str],
        name_roles: NameRoles,
        exact: bool = False,
        memory: int | None = None,
        spill: str | Path | None = None,
    ) -> None:
        """`name_roles`: asked where the cells do not say what they are about."""
        named = LocalFiles(paths, paths[0])
        if named.kind != "parquet":
            raise EluteError(f"{paths[0]} is {named.kind}; export the cells as Parquet")
        folder, self._remove = scratch.make_folder(spill)
        try:
            self._cells: CellsFiles = read_cells_files(named.names, folder / "cells.parquet", name_roles)
            self._rows: DuckDBEngine = open_embedded(str(self._cells.path), exact, memory, spill)
        except BaseException:
            self._remove()
            raise
        about = self._cells.about
        self.label, self.roles, self.filters = about.log, about.roles, about.filters
        self._own = replace(self.roles, click=layout.CLICKS, impressions=layout.IMPRESSIONS, session=None)
        """As the embedded engine reads the cells."""

    @property
    def exact(self) -> bool:
        return self._rows.exact

    @property
    def columns(self) -> list[str]:
        return list(self.roles.columns)

    @property
    def state(self) -> list[State]:
        """Whether the log has changed only its warehouse knows."""
        return []

    def close(self) -> None:
        self._rows.close()
        self._remove()

    def filter(self, filters: Filters, roles: Roles) -> None:
        """Refused: the statement has done it, or nobody."""
        if filters != self.filters:
            raise EluteError(f"{self.label} is counted already; filter in the statement, with `elute.sql`")

    def find_problems(self, roles: Roles) -> list[str]:
        return [*compare_roles(self.roles, roles), *self._rows.find_problems(self._own)]

    def survey(self, roles: Roles) -> Survey:
        """Of the log's rows, of which each cell has some."""
        weighed = self._rows.sum_by_nulls(layout.ROWS, roles.ids)
        if not self._rows.sum_by_nulls(layout.SHOWN, roles.ids).complete:
            why = ", ".join(f"'{column}' is null in {n:,}" for column, n in weighed.nulls.items()) or "no impressions"
            raise EluteError(f"{self.label} has no usable row: of {weighed.rows:,} rows, {why}")
        rows_under = self._rows.survey(replace(self._own, click=None, impressions=layout.SHOWN)).impressions
        found, usable = self._rows.survey(self._own), int(rows_under.sum())
        self._found = found
        return replace(
            found,
            rows=weighed.rows,
            usable=usable,
            unshown=weighed.complete - usable,
            nulls=weighed.nulls,
            rows_under=rows_under,
            filtered=self._cells.constants.get(layout.IN_ALL, weighed.rows) - weighed.rows,
        )

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        return self._rows.connect(self._own, self._found, progress)

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        return self._rows.count(self._own, self._found, progress)

    def stream_chunks(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[Chunk]:
        """As the embedded engine has them, in memory or by partition."""
        if isinstance(self._rows, Chunked):
            return self._rows.stream_chunks(self._own, self._found, progress)
        return chunks_from_counts(self.count(roles, survey, progress))

    def count_repeats_on_page(self, roles: Roles) -> int:
        """The statement has counted them."""
        return 0 if roles.session is None else self._cells.constants[layout.REPEATED]

    def find_busiest_query(self, roles: Roles) -> object:
        return self._rows.find_busiest_query(self._own)

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        return self._rows.find_examples(self._own, self._found, factors, each)

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        raise EluteError(f"{self.label} was given as cells, without '{value}'; pass the log itself")

"""A folder of counts under a memory limit: one of its chunks at a time, each with all cells of its items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from elute._util import scratch
from elute.cells.counts import Membership, sum_by_item
from elute.cells.partitions import Partition
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.counted import CountedCells
from elute.engines.counting import LinkFactors, Totals, merge_forests, summarise_cells
from elute.engines.counts_folder.engine import CountsEngine
from elute.engines.counts_folder.held import HeldCounts
from elute.engines.duckdb.connection import connect
from elute.engines.partitioned.engine import partition_memory, refuse_factors
from elute.engines.partitioned.local import LocalPartitions
from elute.engines.partitioned.query_table import QueryKeeper, QueryTable
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.progress import Progress


class PartitionedCountsEngine(QueryKeeper, CountsEngine):
    """As `CountsEngine`, without all cells in memory, but for what cannot go from partition to partition (`count`)."""

    def __init__(self, files: HeldCounts, memory: int, spill: str | Path | None = None) -> None:
        self._bytes, self._memory = partition_memory(memory), memory
        super().__init__(files, spill)
        place, self._remove_scratch = scratch.make_folder(spill)
        self._connection = connect()
        self._connection.execute(f"SET temp_directory = {quoting.text(str(place))}")
        self._connection.execute(f"SET memory_limit = '{self._bytes // 2**20}MiB'")

    def close(self) -> None:
        super().close()
        self._connection.close()
        self._remove_scratch()

    def survey(self, roles: Roles) -> Survey:
        """Refused where there are too many factors."""
        found = super().survey(roles)
        refuse_factors(self._memory, len(found.keys))
        return found

    def partitions(self, roles: Roles, survey: Survey, progress: Progress) -> LocalPartitions:
        """The parts that the counts were written in."""
        names = partial(self._files.items, list(roles.item))
        return LocalPartitions(survey.factors, self._read_partitions, names, self._bytes)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        return self.partitions(roles, survey, progress).map_reduce(LinkFactors(len(survey.keys)), merge_forests)

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """Forests of all parts in one, and sums of their totals."""
        totals, queries, first = Totals(len(survey.keys)), QueryTable(self._connection, _translate_errors), 0
        for partition in self._read_partitions():
            progress("reading the counts", partition.number, self._files.groups)
            members = self._read_members(roles, partition, first)
            found = summarise_cells(CountedCells(*partition.cells, members), len(survey.keys))
            totals.include(found)
            if found.queries is not None:
                queries.add(found.queries.query.astype(np.uint64), found.queries)
            first += len(partition.cells.offsets) - 1
        self._queries = queries
        _, busiest = queries.size()
        queried = None if roles.query is None else self._files.queries
        return totals.to_structure(queried, busiest, self.exact)

    def _read_partitions(self) -> Iterator[Partition]:
        for group, cells in enumerate(self._files.cells_by_group()):
            yield Partition(group, cells)

    def _read_members(self, roles: Roles, partition: Partition, first: int) -> Membership | None:
        """Of a partition whose items come after `first` others."""
        if roles.query is None:
            return None
        shown = sum_by_item(partition.cells.offsets, partition.cells.impressions)
        if not roles.items_within_queries:
            return self._files.members(first, shown, partition.number)
        query = self._files.query_of_item(partition.number)
        return Membership(self._files.queries, query, np.arange(len(query), dtype=np.int32), shown)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise EluteError(f"cannot combine the queries of the counts: {error}") from error

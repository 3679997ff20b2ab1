"""The embedded engine under a memory limit.

The log is read once, and its rows put aside in files by partition of their items. One partition at a time is then
counted; what a check needs of it is small and is merged (`elute.kernels.forest`). For a fit, the cells of each
partition go to files that are mapped into memory, so that the system may drop pages of them, and the fit goes from
partition to partition. DuckDB keeps to its own part of the limit and spills to the same folder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.chunks import Chunk, Members, cut_chunks
from elute.cells.counts import Counts
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.counted import CountedCells, order_items
from elute.engines.counter import Counter, RowBatch
from elute.engines.counting import LinkFactors, Totals, merge_forests, summarise_cells
from elute.engines.duckdb.engine import DuckDBEngine
from elute.engines.duckdb.keyed_rows import BATCH_ROWS
from elute.engines.partitioned.cell_files import CellFiles
from elute.engines.partitioned.first_rows import BYTES_AN_ITEM, read_first_rows
from elute.engines.partitioned.local import LocalPartitions
from elute.engines.partitioned.name_files import KEY, NameFiles
from elute.engines.partitioned.query_table import QueryKeeper, QueryTable
from elute.engines.partitioned.row_files import RowFiles
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.kernels.keys import KeyTable
from elute.progress import Progress

BYTES_A_ROW = 96
"""Of a partition, at worst: a cell a row, twice during a merge, its buffer, and an item's place in the table of keys.
Its name is added to that, twice."""

BASE, LEAST = 256 << 20, 512 << 20
"""Bytes that the libraries take before anything is read, and below which no limit can be kept."""

BUFFERED = 16 << 20
"""Bytes of rows on their way."""


BYTES_A_FACTOR = 800
"""Of what is as long as the factors, and cannot lie in partitions: their table, totals, components, precision."""


def refuse_factors(memory: int, factors: int) -> None:
    """Say what is needed, where factors alone take more than the limit."""
    needed = BASE + factors * BYTES_A_FACTOR
    if needed > memory:
        raise EluteError(
            f"`memory=`: {factors:,} factors take about {needed / 2**20:,.0f}MB by themselves; allow as much, or count "
            "fewer: fewer bias columns, or `min_factor_impressions=`"
        )


def partition_memory(memory: int) -> int:
    """A third of what a limit leaves; refuses one that cannot be kept to."""
    if memory < LEAST:
        raise EluteError(f"`memory=`: {memory / 2**20:.0f}MB is too little; allow at least {LEAST >> 20}MB")
    return (memory - BASE) // 3


class OutOfCoreEngine(QueryKeeper, DuckDBEngine):
    """A log in files or in a DuckDB table, read with less memory than its cells would take."""

    _by_item = True  # a query may have more rows than fit into memory

    def __init__(self, source: object, exact: bool, memory: int, spill: str | Path | None = None) -> None:
        self._bytes, self._memory = partition_memory(memory), memory
        """Bytes for the cells of a partition; DuckDB has as many, and as many are left for the rest."""
        super().__init__(source, exact, spill=spill)
        self._limit_memory(self._bytes)
        self._files: CellFiles | None = None
        self._on_their_way = BUFFERED
        self._source.execute("SET preserve_insertion_order = false")
        self._source.execute(f"SET streaming_buffer_size = '{BUFFERED >> 20}MiB'")

    def survey(self, roles: Roles) -> Survey:
        """Refused where there are too many factors."""
        found = super().survey(roles)
        refuse_factors(self._memory, len(found.keys))
        return found

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """The forests of all partitions in one, and the sums of their totals. Cells are kept for what comes after."""
        totals, queries = Totals(len(survey.keys)), QueryTable(self._source.connection, self._source.translate_errors)
        kept = self._files
        for partition in self._keep_partitions(roles, survey, progress) if kept is None else kept.read_counted():
            found = summarise_cells(partition, len(survey.keys))
            totals.include(found)
            if found.queries is not None:
                queries.add(partition.queries[found.queries.query], found.queries)
        self._queries = queries
        n, busiest = queries.size()
        return totals.to_structure(n if roles.query is not None else None, busiest, self._exact)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        """From the partitions where they are counted, else as part of the structure; both keep to the limit."""
        if self._files is None:
            return self.structure(roles, survey, progress).root
        return self.partitions(roles, survey, progress).map_reduce(LinkFactors(len(survey.keys)), merge_forests)

    def partitions(self, roles: Roles, survey: Survey, progress: Progress) -> LocalPartitions:
        """Counted when first asked for."""
        files = self._count_cells(roles, survey, progress)
        return LocalPartitions(survey.factors, files.partitions, self._name_reader(roles, survey, files), self._bytes)

    def stream_chunks(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[Chunk]:
        """What `elute count` writes, partition by partition."""
        files = self._count_cells(roles, survey, progress)
        names, queries = self._name_reader(roles, survey, files), KeyTable()
        for partition in files.partitions():
            key, member, shown = files.members(partition.number)
            members = None
            if roles.query is not None:
                members = Members(queries.insert(key)[0], member, shown)
            yield from cut_chunks(partial(names, partition.number), partition.cells, members)

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        """The cells of all partitions at once, mapped into memory: for what cannot go from partition to partition."""
        files = self._count_cells(roles, survey, progress)
        cells, items = files.cells(), files.items()
        return Counts(
            *cells,
            factors=survey.factors,
            membership=None if roles.query is None else files.membership(),
            collision_bound=0.0 if self._exact else len(items) * (len(items) - 1) / 2**65,
            read_items=lambda: self._read_item_table(roles, survey, items),
            read_clusters=lambda column: self._read_clusters(roles, survey, items, column),
        )

    def _count_cells(self, roles: Roles, survey: Survey, progress: Progress) -> CellFiles:
        """Counted once."""
        if self._files is None:
            deque(self._keep_partitions(roles, survey, progress), maxlen=0)
        if self._files is None:
            raise AssertionError("the partitions were not counted to their end")
        return self._files

    def _keep_partitions(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[CountedCells]:
        """Every partition's cells, which also go to files."""
        files = CellFiles(self._source.scratch, int(survey.impressions.sum()))
        for number, found in enumerate(self._count_partitions(roles, survey, progress)):
            files.add(number, found)
            yield found
        self._files = files

    def _name_reader(self, roles: Roles, survey: Survey, files: CellFiles) -> Callable[[int], pa.Table]:
        """The item columns by partition. They are read from the log, all at once, when first asked for."""
        names = NameFiles(self._source.scratch / "names", self._number_of_partitions(roles, survey))

        def read(number: int) -> pa.Table:
            if not names.is_written:
                found = self._read_named_items(roles, survey, files)
                names.write(found, len(roles.item), self._read_item_ids(roles).read)
            table, keys = names.read(number), files.keys(number)
            own, held = np.argsort(keys), table[KEY].to_numpy()
            named = np.argsort(held)
            if not np.array_equal(keys[own], held[named]):
                raise EluteError(
                    f"{self.label} changed while it was being read, or two items share a 64-bit hash; run again "
                    "with exact item codes (`exact=True`)"
                )
            order = np.empty(len(keys), np.int64)
            order[own] = named
            return table.select(list(roles.item)).take(pa.array(order))

        return read

    def _read_named_items(self, roles: Roles, survey: Survey, files: CellFiles) -> Iterator[pa.RecordBatch]:
        """Their columns, then what makes keys of them. No partition is being counted now: its share of the memory is
        for the keys of items that were met, or where these are too many, for DuckDB, which then tells items apart."""
        ids, size, keys = self._read_item_ids(roles), self._batch_rows(roles, BATCH_ROWS), files.items()
        rows = f"{self._keyed_relation} {quoting.where_clause(self._usable_conditions(roles, survey.nulls))}"
        if not self._exact and len(keys) * BYTES_AN_ITEM <= self._bytes:
            yield from read_first_rows(self._source, rows, ids, roles.item, keys, size)
            return
        self._limit_memory(2 * self._bytes)
        with self._source.translate_errors():
            yield from self._source.connection.sql(
                f"SELECT DISTINCT {quoting.names(roles.item)}, {', '.join(ids.sql)} FROM {rows}"
            ).to_arrow_reader(size)
        self._limit_memory(self._bytes)

    def _count_partitions(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[CountedCells]:
        """Every partition's cells; rows of more than one partition are put aside first."""
        partitions = self._number_of_partitions(roles, survey)
        total = int(survey.impressions.sum())
        batches = self._read_batches(roles, survey, progress)
        if partitions == 1:
            yield count_batches(Counter(roles, len(survey.keys), survey.usable, total), batches)
            return
        rows = RowFiles(self._source.scratch, partitions)
        for batch in batches:
            rows.add(batch)
        for number in range(partitions):
            progress(f"counting partition {number + 1} of {partitions}", number, partitions)
            counter = Counter(roles, len(survey.keys), survey.usable, total, partitions)
            yield count_batches(counter, rows.take(number))

    def _limit_memory(self, memory: int) -> None:
        """To DuckDB."""
        self._source.execute(f"SET memory_limit = '{memory // 2**20}MiB'")

    def _number_of_partitions(self, roles: Roles, survey: Survey) -> int:
        """Odd: an item's partition is its place modulo that."""
        each = BYTES_A_ROW + 2 * self._mean_id_bytes(roles)
        return max(1, -(-survey.usable * each // self._bytes)) | 1


def count_batches(counter: Counter, batches: Iterable[RowBatch]) -> CountedCells:
    """What a counter makes of some rows, which DuckDB hands over in any order: items are put into one of their own."""
    for batch in batches:
        counter.add(batch)
    counted = counter.finish()
    return order_items(counted, [(0, len(counted.items))])

"""The embedded engine under a memory limit.

The log is read once, and its rows put aside in files by share of their items. One share at a time is then counted; what
a check needs of it is small and is merged (`elute.kernels.forest`). For a fit, the cells of each share go to files
that are mapped into memory, so that the system may drop pages of them, and the fit goes from share to share. DuckDB
keeps to its own part of the limit and spills to the same folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.chunks import Members, Part, cut
from elute.cells.counts import Counts
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.counting import Batch, Counted, Counter, Linking, Totals, coded, joined_roots, summary
from elute.engines.duckdb.engine import BATCH_ROWS, DuckDBEngine
from elute.engines.partitioned.cell_files import CellFiles
from elute.engines.partitioned.local import LocalShares
from elute.engines.partitioned.name_files import KEY, NameFiles
from elute.engines.partitioned.query_table import KeepsQueries, QueryTable
from elute.engines.partitioned.row_files import RowFiles
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.kernels.keys import KeyTable
from elute.progress import Progress

BYTES_A_ROW = 96
"""Of a share, at worst: a cell a row, twice during a merge, its buffer, and an item's place in the table of keys. Its
name comes to that, twice."""

SAMPLED = 100_000
"""Rows that say how long names are."""

BASE, LEAST = 256 << 20, 512 << 20
"""Bytes that the libraries take before anything is read, and below which no limit can be kept."""

BUFFERED = 16 << 20
"""Bytes of rows on their way."""


def share_of(memory: int) -> int:
    """A third of what a limit leaves; refuses one that cannot be kept to."""
    if memory < LEAST:
        raise EluteError(f"`memory=`: {memory / 2**20:.0f}MB is too little; give at least {LEAST >> 20}MB")
    return (memory - BASE) // 3


class OutOfCoreEngine(KeepsQueries, DuckDBEngine):
    """A log in files or in a DuckDB table, read with less memory than its cells would take."""

    def __init__(self, source: object, exact: bool, memory: int, spill: str | Path | None = None) -> None:
        self._bytes = share_of(memory)
        """Bytes for the cells of a share; DuckDB has as many, and as many are left for the rest."""
        super().__init__(source, exact, spill=spill)
        self._allow(self._bytes)
        self._files: CellFiles | None = None
        self._named: int | None = None
        self._execute("SET preserve_insertion_order = false")
        self._execute(f"SET streaming_buffer_size = '{BUFFERED >> 20}MiB'")

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """The forests of all shares in one, and the sums of their totals."""
        totals, queries = Totals(len(survey.keys)), QueryTable(self._source.connection, self._source.reading)
        for counter, share in self._shares(roles, survey, progress):
            found = summary(share, len(survey.keys))
            totals.include(found)
            if found.queries is not None:
                queries.add(counter.queries.keys()[found.queries.query], found.queries)
        self._queries = queries
        n, busiest = queries.size()
        return totals.structure(n if roles.query is not None else None, busiest, self._exact)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        """From the shares where they are counted, else as part of the structure; both keep to the limit."""
        if self._files is None:
            return self.structure(roles, survey, progress).root
        return self.shares(roles, survey, progress).merged(Linking(len(survey.keys)), joined_roots)

    def shares(self, roles: Roles, survey: Survey, progress: Progress) -> LocalShares:
        """Counted when first asked for."""
        files = self._counted(roles, survey, progress)
        return LocalShares(survey.factors, files.shares, self._names(roles, survey, files), self._bytes)

    def parts(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[Part]:
        """What `elute count` writes, share by share."""
        files = self._counted(roles, survey, progress)
        names, queries = self._names(roles, survey, files), KeyTable()
        for share in files.shares():
            key, member, shown = files.members(share.number)
            members = None
            if roles.query is not None:
                members = Members(queries.insert(key)[0], member, shown)
            yield from cut(partial(names, share.number), share.cells, members)

    def count(self, roles: Roles, survey: Survey, progress: Progress) -> Counts:
        """The cells of all shares at once, mapped into memory: for what cannot go from share to share."""
        files = self._counted(roles, survey, progress)
        cells, items = files.cells(), files.items()
        return Counts(
            *cells,
            factors=survey.factors,
            membership=None if roles.query is None else files.membership(),
            collision_bound=0.0 if self._exact else len(items) * (len(items) - 1) / 2**65,
            read_items=lambda: self._item_table(roles, survey, coded(items)),
            read_clusters=lambda column: self._clusters(roles, survey, coded(items), coded(survey.keys), column),
        )

    def _counted(self, roles: Roles, survey: Survey, progress: Progress) -> CellFiles:
        """Counted once."""
        if self._files is None:
            files = CellFiles(self._source.scratch, int(survey.impressions.sum()))
            for number, (counter, found) in enumerate(self._shares(roles, survey, progress)):
                files.add(number, counter, found)
            self._files = files
        return self._files

    def _names(self, roles: Roles, survey: Survey, files: CellFiles) -> Callable[[int], pa.Table]:
        """The item columns by share. They are read from the log, all at once, when first asked for."""
        names = NameFiles(self._source.scratch / "names", self._number_of_shares(roles, survey))

        def read(number: int) -> pa.Table:
            if not names.written:
                self._allow(2 * self._bytes)  # no share is being counted now
                names.write(self._distinct_items(roles, survey))
                self._allow(self._bytes)
            table, keys = names.read(number), files.keys(number)
            if table.num_rows != len(keys):
                raise EluteError(
                    f"{self.label} has changed while it was read, or two items share a 64-bit hash; run again, "
                    "with exact item codes (`exact=True`)"
                )
            order = np.empty(len(keys), np.int64)
            order[np.argsort(keys)] = np.argsort(table[KEY].to_numpy())
            return table.select(list(roles.item)).take(pa.array(order))

        return read

    def _distinct_items(self, roles: Roles, survey: Survey) -> Iterator[pa.RecordBatch]:
        with self._source.reading():
            yield from self._source.connection.sql(
                f"SELECT DISTINCT {self._key('item', roles.item)} AS {KEY}, {quoting.names(roles.item)} "
                f"FROM {self._keyed} {quoting.conjunction(self._usable(roles, survey.nulls))}"
            ).to_arrow_reader(max(2048, min(BATCH_ROWS, BUFFERED // self._name_bytes(roles))))

    def _shares(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[tuple[Counter, Counted]]:
        """The counter of every share and what it counted; rows of more than one share are put aside first."""
        shares = self._number_of_shares(roles, survey)
        total = int(survey.impressions.sum())
        batches = self._batches(roles, survey, progress)
        if shares == 1:
            yield counted(Counter(roles, survey.keys, survey.usable, total), batches)
            return
        rows = RowFiles(self._source.scratch, shares)
        for batch in batches:
            rows.add(batch)
        for number in range(shares):
            progress(f"counting, share {number + 1} of {shares}", number, shares)
            yield counted(Counter(roles, survey.keys, survey.usable, total, shares), rows.take(number))

    def _allow(self, memory: int) -> None:
        """To DuckDB."""
        self._execute(f"SET memory_limit = '{memory // 2**20}MiB'")

    def _number_of_shares(self, roles: Roles, survey: Survey) -> int:
        """Odd: an item's share is its key modulo that, and tables of keys go by a key's last bits."""
        each = BYTES_A_ROW + 2 * self._name_bytes(roles)
        return max(1, -(-survey.usable * each // self._bytes)) | 1

    def _name_bytes(self, roles: Roles) -> int:
        """Of an item's columns, on average, by a look at some rows."""
        if self._named is None:
            text = [quoting.name(column) for column in roles.item if self._source.types[column] == "VARCHAR"]
            sizes = " + ".join(f"coalesce(avg(strlen({column})), 0)" for column in text) or "0"
            some = f"SELECT {quoting.names(roles.item)} FROM {self._source.relation} LIMIT {SAMPLED}"
            self._named = int(self._row(f"SELECT ({sizes})::BIGINT FROM ({some})")[0]) + 8 * len(roles.item)
        return self._named


def counted(counter: Counter, batches: Iterable[Batch]) -> tuple[Counter, Counted]:
    """What a counter makes of some rows."""
    for batch in batches:
        counter.add(batch)
    return counter, counter.finish()

"""A folder of counts under a memory limit: one of its parts at a time, each with all cells of its items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from elute._util import scratch
from elute.cells.counts import Cells, Membership, sums_by_item
from elute.cells.partitions import Share
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.counting import Counted, Linking, Totals, joined_roots, summary
from elute.engines.counts_folder.engine import CELLS, QUERY, CountsEngine
from elute.engines.partitioned.engine import share_of
from elute.engines.partitioned.local import LocalShares
from elute.engines.partitioned.query_table import KeepsQueries, QueryTable
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.progress import Progress


class CountsInParts(KeepsQueries, CountsEngine):
    """As `CountsEngine`, without all cells in memory, but for what cannot go from share to share (`count`)."""

    def __init__(self, folder: str | Path, memory: int, spill: str | Path | None = None) -> None:
        self._bytes = share_of(memory)
        super().__init__(folder)
        place, self._remove = scratch.folder(spill)
        self._connection = duckdb.connect()
        self._connection.execute(f"SET temp_directory = {quoting.text(str(place))}")
        self._connection.execute(f"SET memory_limit = '{self._bytes // 2**20}MiB'")

    def close(self) -> None:
        self._connection.close()
        self._remove()

    def shares(self, roles: Roles, survey: Survey, progress: Progress) -> LocalShares:
        """The parts that the counts were written in."""
        names = partial(self._read, "items", list(roles.item))
        return LocalShares(survey.factors, self._shares, names, self._bytes)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        return self.shares(roles, survey, progress).merged(Linking(len(survey.keys)), joined_roots)

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """Forests of all parts in one, and sums of their totals."""
        totals, queries, first = Totals(len(survey.keys)), QueryTable(self._connection, _guarded), 0
        for share in self._shares():
            progress("reading the counts", share.number, self._groups)
            members = self._members(roles, share, first)
            found = summary(Counted(*share.cells, members), len(survey.keys))
            totals.include(found)
            if found.queries is not None:
                queries.add(found.queries.query.astype(np.uint64), found.queries)
            first += len(share.cells.offsets) - 1
        self._queries = queries
        _, busiest = queries.size()
        return totals.structure(self._about["queries"], busiest, self.exact)

    def _shares(self) -> Iterator[Share]:
        for group in range(self._groups):
            sizes = self._read("items", [CELLS], group)[CELLS].to_numpy()
            cells = self._read("cells", None, group)
            if cells.num_rows != sizes.sum():
                raise EluteError(f"{self._folder} is not as `elute.count` wrote it: count the log again")
            arrays = (cells[name].to_numpy() for name in ("factor", "impressions", "clicks"))
            yield Share(group, Cells(np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), *arrays))

    def _members(self, roles: Roles, share: Share, first: int) -> Membership | None:
        """Of a share whose items come after `first` others."""
        if roles.query is None:
            return None
        queries = int(self._about["queries"])
        if not roles.items_within_queries:
            pairs = self._read("pairs", None, share.number)
            query, item, shown = (pairs[name].to_numpy() for name in ("query", "item", "impressions"))
            return Membership(queries, query, (item - first).astype(np.int32), shown)
        query = self._read("items", [QUERY], share.number)[QUERY].to_numpy()
        shown = sums_by_item(share.cells.offsets, share.cells.impressions)
        return Membership(queries, query, np.arange(len(query), dtype=np.int32), shown)


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise EluteError(f"cannot put the queries of the counts together: {error}") from error

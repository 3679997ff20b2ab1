"""The door of a counts folder: its files as they were written, or a line that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute.cells.counts import Cells, Membership
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.door.fields import Damaged
from elute.door.json_file import read_json
from elute.door.seals import require_sealed
from elute.door.tables import (
    Column,
    Columns,
    Ids,
    Integers,
    check_columns,
    open_parquet,
    refusing,
    require_columns,
    require_type,
)
from elute.engines.counts_folder.cells import Sums, add_sizes, require_same, require_sound
from elute.engines.counts_folder.layout import ABOUT, CELLS, FORMAT, MARK, QUERY
from elute.engines.fingerprint.compare import find_changed_source
from elute.errors import EluteError

_CELL = {
    "factor": (pa.int32(),),
    "impressions": (pa.uint32(), pa.uint64()),
    "clicks": (pa.uint32(), pa.uint64()),
}
"""The types of columns; their numbers are looked at all together, in `elute.engines.counts_folder.cells`."""
_MOST = 2**31 - 1
"""Items, factors or queries that codes of 32 bits tell apart."""
_AGAIN = "count the log again"


class CountsFiles:
    """A folder of counts, opened. `group`: one of the parts that they were written in; None for all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[str, Any] = read_json(folder / MARK, ABOUT, "what `elute.count` writes", _AGAIN)
        if self.about["format"] != FORMAT:
            raise EluteError(f"{folder} was written by another version of elute; {_AGAIN}")
        require_sealed(folder, self.about.get("files"), MARK, _AGAIN)
        if self.about["usable"] > self.about["rows"] or (self.about["queries"] is None) != (
            self.about["roles"]["query"] is None
        ):
            raise EluteError(f"{folder / MARK} contradicts itself; {_AGAIN}")
        self.roles = Roles.from_fields(self.about["roles"])
        self.filters = Filters.from_options(self.about.get("filters", {}))

    def close(self) -> None:
        """Nothing is held."""

    @property
    def exact(self) -> bool:
        """Whether items were told apart by value."""
        return bool(self.about.get("exact", self.collision_bound == 0))

    @property
    def collision_bound(self) -> float:
        return float(self.about["collision_bound"])

    def refuse_changed(self) -> None:
        """Refuse counts of a log that has changed since; where it is out of reach they are taken as they are."""
        source = find_changed_source(self.about["source"])
        if source is not None:
            again = f"count {self.about['log']} again with `elute.count` (`out='{self.folder}'`)"
            raise EluteError(f"{source} has changed since it was counted: {again}")

    @property
    def queries(self) -> int:
        return int(self.about["queries"])

    def find_busiest_query(self) -> object:
        """By name; known where it has most of the impressions."""
        return self.about["busiest_query"]

    @cached_property
    def groups(self) -> int:
        """Parts that the counts were written in."""
        items, cells = self._open("items"), self._open("cells")
        with self._refusing("cells"):
            if items.num_row_groups != cells.num_row_groups:
                raise Damaged(f"it has {cells.num_row_groups:,} parts, items.parquet {items.num_row_groups:,}")
        return int(cells.num_row_groups)

    @cached_property
    def factors(self) -> pa.Table:
        """The bias columns, and what was counted under each factor."""
        columns: dict[str, Column] = {name: Ids() for name in self.roles.bias}
        columns |= {name: Integers() for name in ("elute_impressions", "elute_clicks")}
        table = self._read("factors", columns=None, wanted=columns)
        with self._refusing("factors"):
            if "elute_rows" in table.column_names:
                check_columns(table, {"elute_rows": Integers()})
            _check_factors(table, list(self.roles.bias))
        return table

    def items(self, columns: list[str], group: int | None = None) -> pa.Table:
        """The columns that name items."""
        return self._read("items", columns, {name: Ids() for name in columns}, group)

    def item_rows(self, group: int) -> pa.Table:
        """The columns that name items, and those that say what is counted of them."""
        wanted: dict[str, Column] = {name: Ids() for name in self.roles.item}
        wanted[CELLS] = Integers()
        if self.roles.items_within_queries:
            wanted[QUERY] = self._query
        return self._read("items", list(wanted), wanted, group)

    def cells(self) -> Cells:
        """All of them; every number is such as kernels may trust."""
        cells, sums = self.read_group(None)
        self.require_all(sums)
        return cells

    def cells_by_group(self) -> Iterator[Cells]:
        """Part after part."""
        sums = Sums()
        for group in range(self.groups):
            cells, found = self.read_group(group)
            sums = sums.add(found)
            yield cells
        self.require_all(sums)

    def read_group(self, group: int | None, items: pa.Table | None = None) -> tuple[Cells, Sums]:
        """One of the parts, and what its cells add up to. `items`: theirs, where they have been read."""
        table = self._read("cells", list(_CELL), {}, group)
        sizes = self._read("items", [CELLS], {}, group) if items is None else items
        with self._refusing("cells"):
            for name, types in _CELL.items():
                require_type(table, name, types)
            require_type(sizes, CELLS, (pa.int64(),))
            arrays = (table[name].to_numpy() for name in _CELL)
            cells = Cells(add_sizes(sizes[CELLS].to_numpy(), table.num_rows), *arrays)
            return cells, require_sound(cells, self.factors.num_rows)

    def require_all(self, sums: Sums) -> None:
        """Refuse cells that together are not those that the factors were counted from."""
        told = Sums(*(int(self.factors[name].to_numpy().sum()) for name in ("elute_impressions", "elute_clicks")))
        with self._refusing("cells"):
            require_same(sums, told)

    def query_of_item(self, group: int | None = None) -> NDArray[np.int32]:
        """By item, where an item belongs to one query by its name."""
        return np.asarray(self._read("items", [QUERY], {QUERY: self._query}, group)[QUERY].to_numpy())

    @property
    def _query(self) -> Integers:
        """Numbers of queries."""
        return Integers((pa.int32(),), most=self.queries - 1)

    def members(self, first: int, shown: NDArray[np.int64], group: int | None = None) -> Membership:
        """Which items were shown for which query. `shown`: how often in all, by item; there are `first` items before
        them."""
        wanted: Columns = {
            "query": self._query,
            "item": Integers((pa.int64(),), first, first + len(shown) - 1),
            "impressions": Integers((pa.int64(),), 1),
        }
        pairs = self._read("pairs", list(wanted), wanted, group)
        query, item, times = (pairs[name].to_numpy() for name in wanted)
        with self._refusing("pairs"):
            if (np.bincount(item - first, times, len(shown)) != shown).any():
                raise Damaged("an item was shown more or less often than its cells say")
        return Membership(self.queries, query, (item - first).astype(np.int32), times)

    def _read(self, name: str, columns: list[str] | None, wanted: Columns, group: int | None = None) -> pa.Table:
        file = self._open(name)
        with self._refusing(name):
            require_columns(file.schema_arrow.names, columns or list(wanted))
            if group is not None and group >= file.num_row_groups:
                raise Damaged(f"it has {file.num_row_groups:,} parts, others have more")
            table = file.read(columns) if group is None else file.read_row_group(group, columns)
            check_columns(table, wanted)
            return table

    def _open(self, name: str) -> pq.ParquetFile:
        with self._refusing(name):
            file = open_parquet(self.folder / f"{name}.parquet")
            rows, told = file.metadata.num_rows, self.about.get(name)
            if told is not None and rows != told:
                raise Damaged(f"it has {rows:,} rows, but {MARK} says {told:,}")
            if rows > _MOST and name != "cells":
                raise Damaged(f"it has {rows:,} rows, more than codes of 32 bits tell apart")
            return file

    @contextmanager
    def _refusing(self, name: str) -> Iterator[None]:
        with refusing(self.folder / f"{name}.parquet", _AGAIN):
            yield


def _check_factors(table: pa.Table, bias: list[str]) -> None:
    if not table.num_rows:
        raise Damaged("it has no factor")
    if table.group_by(bias).aggregate([]).num_rows != table.num_rows:
        raise Damaged("it has a factor twice")
    shown = table["elute_impressions"].to_numpy()
    if (table["elute_clicks"].to_numpy() > shown).any():
        raise Damaged("a factor has more clicks than impressions")
    if shown.sum(dtype=np.float64) >= 2.0**63:
        raise Damaged("its impressions are beyond 64 bits")

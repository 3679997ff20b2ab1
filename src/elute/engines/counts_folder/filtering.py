"""Some factors of a folder of counts, as a folder of counts: so that whatever reads counts reads these.

Rows are gone once a log is counted. So `where` comes too late here, and of what was left out while counting (rows with
a null id or without an impression) nobody knows under which factor it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute._util import files
from elute.cells.factors import to_json_value
from elute.cells.filters import Filters, choose_position
from elute.cells.roles import Roles
from elute.engines.counts_folder.held import HeldCounts
from elute.engines.counts_folder.layout import CELLS, MARK, QUERY
from elute.errors import EluteError
from elute.kernels.keys import KeyTable


def choose_factors(factors: pa.Table, roles: Roles, filters: Filters) -> NDArray[np.bool_]:
    """Which rows of `factors.parquet` pass."""
    kept = np.ones(factors.num_rows, np.bool_)
    if filters.max_position is not None:
        position = factors[choose_position(roles.bias, lambda column: _find_flaw(factors, column))]
        kept &= pc.less_equal(position.cast(pa.float64()), float(filters.max_position)).to_numpy()
    if filters.min_factor_impressions is not None:
        kept &= factors["elute_impressions"].to_numpy() >= filters.min_factor_impressions
    return kept


def _find_flaw(factors: pa.Table, column: str) -> str | None:
    """Why a column does not hold positions."""
    kind = factors[column].type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return None
    try:
        factors[column].cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return f"holds {kind} values that are not numbers"
    return f"holds {kind} values" if pa.types.is_boolean(kind) else None


def write_kept(source: HeldCounts, roles: Roles, kept: NDArray[np.bool_], target: Path) -> None:
    """Write the counts of these factors to `target`, a row group at a time; but for the filters, its `counts.json` says
    what was done."""
    about = source.about
    if roles.query is not None and not roles.items_within_queries:
        raise EluteError(
            f"counts of {about['log']} do not tell for which query an item was shown under a factor; "
            "filter while counting, with `elute.count`"
        )
    factors = source.factors
    rows = _count_rows(factors, about, roles)
    files.write_parquet(target / "factors.parquet", factors.filter(pa.array(kept)))
    sizes = _KeptSizes()
    files.write_row_groups(target / "items.parquet", (sizes.add(part) for part in _iterate_groups(source, kept)))
    files.write_row_groups(target / "cells.parquet", (part.cells for part in _iterate_groups(source, kept)))
    lost, before = int(rows[~kept].sum()), about.get("rows_filtered", 0)
    found = {
        **{name: value for name, value in about.items() if name != "files"},
        "rows": about["rows"] - lost,
        "rows_filtered": None if before is None else before + lost,
        "usable": about["usable"] - lost,
        "items": sizes.items,
        "cells": sizes.cells,
        "queries": None if roles.query is None else len(sizes.queries),
        "collision_bound": 0.0 if source.exact else sizes.items * (sizes.items - 1) / 2**65,
        "busiest_query": sizes.find_dominant(target, roles) if roles.query is not None else None,
    }
    files.write_text(target / MARK, json.dumps(found, ensure_ascii=False) + "\n")


class _Group(NamedTuple):
    """What is left of a row group."""

    items: pa.Table
    cells: pa.Table
    shown: NDArray[np.int64]
    """Impressions by item."""


def _iterate_groups(source: HeldCounts, kept: NDArray[np.bool_]) -> Iterator[_Group]:
    """Row groups with the cells of these factors, which are numbered anew, and the items that have any."""
    code = np.cumsum(kept, dtype=np.int32) - 1
    for number, (offsets, factor, impressions, clicks) in enumerate(source.cells_by_group()):
        named, mine = source.item_rows(number), kept[factor]
        owner = np.repeat(np.arange(named.num_rows), np.diff(offsets))[mine]
        if not len(owner):
            continue
        left = pa.table({"factor": code[factor[mine]], "impressions": impressions[mine], "clicks": clicks[mine]})
        size = np.bincount(owner, minlength=named.num_rows)
        shown = np.zeros(named.num_rows, np.int64)
        np.add.at(shown, owner, impressions[mine].astype(np.int64))
        place = named.column_names.index(CELLS)
        some = named.set_column(place, named.schema.field(CELLS), pa.array(size, named.schema.field(CELLS).type))
        yield _Group(some.filter(pa.array(size > 0)), left, shown[size > 0])


class _KeptSizes:
    """Added up while items are written; queries that are left are numbered without gaps."""

    def __init__(self) -> None:
        self.items, self.cells = 0, 0
        self.queries = KeyTable()
        self._shown = np.zeros(0, np.int64)
        """Impressions by query."""

    def add(self, group: _Group) -> pa.Table:
        """The items as they are to be written."""
        self.items += group.items.num_rows
        self.cells += group.cells.num_rows
        if QUERY not in group.items.column_names:
            return group.items
        field = group.items.schema.field(QUERY)
        code = self.queries.insert(group.items[QUERY].to_numpy().astype(np.uint64))[0]
        self._shown = np.concatenate((self._shown, np.zeros(len(self.queries) - len(self._shown), np.int64)))
        np.add.at(self._shown, code, group.shown)
        return group.items.set_column(group.items.column_names.index(QUERY), field, pa.array(code, field.type))

    def find_dominant(self, folder: Path, roles: Roles) -> object:
        """The query with more than half of the impressions."""
        if 2 * self._shown.max() <= self._shown.sum():
            return None
        numbers = pq.read_table(folder / "items.parquet", columns=[QUERY])[QUERY]
        first = pc.index(numbers, pa.scalar(int(self._shown.argmax()), numbers.type)).as_py()
        named = pq.read_table(folder / "items.parquet", columns=[roles.query])
        return to_json_value(named[0][first].as_py())


def _count_rows(factors: pa.Table, about: dict[str, Any], roles: Roles) -> NDArray[np.int64]:
    """By factor."""
    if "elute_rows" in factors.column_names:
        return np.asarray(factors["elute_rows"].to_numpy())
    if roles.impressions is None:
        return np.asarray(factors["elute_impressions"].to_numpy())
    raise EluteError(f"counts of {about['log']} were written by an older elute; count the log again to filter them")

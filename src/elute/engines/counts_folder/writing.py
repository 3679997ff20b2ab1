"""Writing a folder of counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from elute._util import files
from elute._util.folders import name_lock, write_folder
from elute._util.threads import run_beside
from elute.cells.chunks import Chunk
from elute.cells.factors import to_json_value
from elute.cells.filters import Filters
from elute.cells.formula import tie_factors
from elute.cells.roles import Roles
from elute.cells.survey import Survey
from elute.door.seals import seal
from elute.engines.base import Engine
from elute.engines.counts_folder.layout import (
    CELLS,
    FILES,
    FORMAT,
    MARK,
    PARTS,
    QUERY,
    AboutCounts,
    is_counts,
)
from elute.errors import EluteError


def save_counts(
    engine: Engine,
    roles: Roles,
    filters: Filters,
    survey: Survey,
    chunks: Callable[[], Iterable[Chunk]],
    folder: str | Path,
    held: bool = False,
) -> AboutCounts:
    """Write counts to a folder, a row group for each chunk; gives what `counts.json` says. `held`: the cells are in
    memory, and chunks can be asked for several times at once."""
    target = Path(folder)
    begun = target / name_lock(MARK)
    if (target / PARTS).exists():
        raise EluteError(f"'{folder}' is a folder of parts; add to it with `append=True`, or choose another")
    if target.exists() and not (is_counts(target) or begun.exists()) and (not target.is_dir() or any(target.iterdir())):
        raise EluteError(f"'{folder}' already exists and is not a counts folder; choose another")
    with write_folder(target, MARK, FILES) as new:
        return write_counts(engine, roles, filters, survey, chunks, new, held)


def write_counts(
    engine: Engine,
    roles: Roles,
    filters: Filters,
    survey: Survey,
    chunks: Callable[[], Iterable[Chunk]],
    target: Path,
    held: bool = False,
) -> AboutCounts:
    """Write counts into a folder that nobody else knows of yet; a file beside the other where they are `held`."""
    files.write_parquet(target / "factors.parquet", _factor_table(survey))
    sizes = _Sizes()

    def write_items() -> None:
        tables = (sizes.add(chunk, _item_table(chunk, roles)) for chunk in chunks())
        files.write_row_groups(target / "items.parquet", tables, (CELLS,))

    def write_rest() -> None:
        files.write_row_groups(target / "cells.parquet", map(_cell_table, chunks()))
        if roles.query is not None and not roles.items_within_queries:
            files.write_row_groups(target / "pairs.parquet", _pair_tables(chunks()))

    if held:
        run_beside(write_items, (write_rest,))
    else:
        write_items()
        write_rest()
    dominant = sizes.busiest > int(survey.impressions.sum()) / 2
    about: AboutCounts = {
        "format": FORMAT,
        "log": engine.label,
        "source": engine.state,
        "roles": roles.to_dict(),
        "filters": filters.to_dict(),
        "rows": survey.rows,
        "rows_filtered": survey.filtered,
        "usable": survey.usable,
        "unshown": survey.unshown,
        "nulls": survey.nulls,
        "items": sizes.items,
        "cells": sizes.cells,
        "queries": len(sizes.shown) if roles.query is not None else None,
        "collision_bound": 0.0 if engine.exact else sizes.items * (sizes.items - 1) / 2**65,
        "repeats_on_page": engine.count_repeats_on_page(roles),
        "busiest_query": to_json_value(engine.find_busiest_query(roles)) if dominant else None,
        "exact": engine.exact,
        "files": seal(target, FILES),
    }
    files.write_text(target / MARK, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return about


class _Sizes:
    """Added up while chunks are written."""

    def __init__(self) -> None:
        self.items, self.cells = 0, 0
        self.shown = np.zeros(0, np.int64)
        """Impressions by query."""

    @property
    def busiest(self) -> int:
        return int(self.shown.max(initial=0))

    def add(self, chunk: Chunk, table: pa.Table) -> pa.Table:
        self.items += len(chunk.cells.offsets) - 1
        self.cells += len(chunk.cells.factor)
        if chunk.members is not None:
            known = max(len(self.shown), int(chunk.members.query.max(initial=-1)) + 1)
            self.shown = np.concatenate((self.shown, np.zeros(known - len(self.shown), np.int64)))
            np.add.at(self.shown, chunk.members.query, chunk.members.impressions)
        return table


def _factor_table(survey: Survey) -> pa.Table:
    totals = {"elute_rows": survey.rows_under, "elute_impressions": survey.impressions, "elute_clicks": survey.clicks}
    table = tie_factors(survey.factors, None)  # the roles have the formula
    for name, amounts in totals.items():
        table = table.append_column(name, pa.array(amounts))
    return table


def _item_table(chunk: Chunk, roles: Roles) -> pa.Table:
    table = chunk.items().append_column(CELLS, pa.array(np.diff(chunk.cells.offsets)))
    if chunk.members is None or not roles.items_within_queries:
        return table
    return table.append_column(QUERY, pa.array(chunk.members.query))


def _cell_table(chunk: Chunk) -> pa.Table:
    return pa.table({name: getattr(chunk.cells, name) for name in ("factor", "impressions", "clicks")})


def _pair_tables(chunks: Iterable[Chunk]) -> Iterator[pa.Table]:
    first = 0
    for chunk in chunks:
        if chunk.members is not None:
            query, item, shown = chunk.members
            yield pa.table({"query": query, "item": item.astype(np.int64) + first, "impressions": shown})
        first += len(chunk.cells.offsets) - 1

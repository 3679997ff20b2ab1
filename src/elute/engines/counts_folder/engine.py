"""A log that was counted before: the folder of `elute count` takes the log's place.

| file | what |
|---|---|
| `counts.json` | column roles, sizes, the source's fingerprint; written last: what lacks it is not a counts folder |
| `factors.parquet` | the bias columns, impressions, clicks |
| `items.parquet` | the item columns, `elute_cells` (how many the item has) and `elute_query` (its query's number) |
| `cells.parquet` | factor, impressions and clicks, in the order of the items |
| `pairs.parquet` | query, item, impressions: where an item does not tell its query |
| `counts.unfinished` | only while they are written |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute._util import files
from elute.cells.chunks import Chunk
from elute.cells.counts import Counts, Membership
from elute.cells.roles import Roles
from elute.cells.structure import structure_from_counts
from elute.cells.survey import Survey
from elute.engines.base import Engine
from elute.engines.fingerprint.compare import find_changed_source
from elute.engines.source_state import State
from elute.errors import EluteError
from elute.progress import Progress

FORMAT = 2
MARK = "counts.json"
_BEGUN = "counts.unfinished"
"""Tells a folder that an interrupted count has left, which may be written over, from what is somebody's own."""
CELLS, QUERY = "elute_cells", "elute_query"


class AboutCounts(TypedDict):
    """What `counts.json` says."""

    format: int
    log: str
    source: list[State]
    roles: dict[str, str | list[str] | None]
    rows: int
    usable: int
    unshown: int
    nulls: dict[str, int]
    items: int
    cells: int
    queries: int | None
    collision_bound: float
    repeats_on_page: int
    busiest_query: str | float | None


def is_counts(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a folder of counts."""
    return isinstance(source, str | Path) and (Path(source) / MARK).is_file()


def save_counts(
    engine: Engine, roles: Roles, survey: Survey, chunks: Callable[[], Iterable[Chunk]], folder: str | Path
) -> AboutCounts:
    """Write counts to a folder, a row group for each chunk; gives what `counts.json` says."""
    target = Path(folder)
    begun = target / _BEGUN
    if target.exists() and not (is_counts(target) or begun.exists()) and (not target.is_dir() or any(target.iterdir())):
        raise EluteError(f"'{folder}' already exists and is not a counts folder; choose another")
    target.mkdir(parents=True, exist_ok=True)
    begun.touch()
    (target / MARK).unlink(missing_ok=True)
    totals = survey.factors.append_column("elute_impressions", pa.array(survey.impressions))
    files.write_parquet(target / "factors.parquet", totals.append_column("elute_clicks", pa.array(survey.clicks)))
    sizes = _Sizes()
    tables = (sizes.add(chunk, _item_table(chunk, roles)) for chunk in chunks())
    files.write_row_groups(target / "items.parquet", tables)
    files.write_row_groups(target / "cells.parquet", map(_cell_table, chunks()))
    if roles.query is not None and not roles.items_within_queries:
        files.write_row_groups(target / "pairs.parquet", _pair_tables(chunks()))
    dominant = sizes.busiest > int(survey.impressions.sum()) / 2
    about: AboutCounts = {
        "format": FORMAT,
        "log": engine.label,
        "source": engine.state,
        "roles": asdict(roles),
        "rows": survey.rows,
        "usable": survey.usable,
        "unshown": survey.unshown,
        "nulls": survey.nulls,
        "items": sizes.items,
        "cells": sizes.cells,
        "queries": len(sizes.shown) if roles.query is not None else None,
        "collision_bound": 0.0 if engine.exact else sizes.items * (sizes.items - 1) / 2**65,
        "repeats_on_page": engine.count_repeats_on_page(roles),
        "busiest_query": _to_json_value(engine.find_busiest_query(roles)) if dominant else None,
    }
    files.write_text(target / MARK, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    begun.unlink()
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


class CountsEngine:
    """Counts in a folder. Refused where the log has changed since; where it is out of reach they are taken as they
    are."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        try:
            self._about: dict[str, Any] = json.loads((self._folder / MARK).read_text(encoding="utf-8"))
            if self._about["format"] != FORMAT:
                raise EluteError(f"{folder} was written by another version of elute; count the log again")
            names = dict(self._about["roles"])
            self.roles = Roles(item=tuple(names.pop("item")), bias=tuple(names.pop("bias")), **names)
        except (KeyError, TypeError, ValueError) as error:
            raise EluteError(f"{self._folder / MARK} is not what `elute.count` writes: {error}") from error
        self.label: str = self._about["log"]
        source = find_changed_source(self.state)
        if source is not None:
            again = f"count {self.label} again with `elute.count` (`out='{folder}'`)"
            raise EluteError(f"{source} has changed since it was counted: {again}")

    @property
    def exact(self) -> bool:
        return bool(self._about["collision_bound"] == 0)

    @property
    def columns(self) -> list[str]:
        return list(self.roles.columns)

    @property
    def state(self) -> list[State]:
        return list(self._about["source"])

    def close(self) -> None:
        """Nothing is held."""

    def find_problems(self, roles: Roles) -> list[str]:
        """Other columns than those that were counted."""
        mine = asdict(self.roles)
        return [
            f"these counts were made with {part} {_to_text(mine[part])}, not {_to_text(asked)}; count the log again"
            for part, asked in asdict(roles).items()
            if asked != mine[part]
        ]

    def survey(self, roles: Roles) -> Survey:
        table = self._read("factors")
        return Survey(
            rows=self._about["rows"],
            usable=self._about["usable"],
            unshown=self._about["unshown"],
            nulls=self._about["nulls"],
            factors=table.select(list(roles.bias)),
            keys=np.arange(table.num_rows, dtype=np.uint64),
            impressions=table["elute_impressions"].to_numpy(),
            clicks=table["elute_clicks"].to_numpy(),
        )

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        return structure_from_counts(self.count(roles, survey, progress)).root

    def count(self, roles: Roles, survey: Survey, progress: Progress) -> Counts:
        progress("reading the counts", 0, 0)
        cells, sizes = self._read("cells"), self._read("items", [CELLS])[CELLS].to_numpy()
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        counts = Counts(
            offsets=offsets,
            factor=cells["factor"].to_numpy(),
            impressions=cells["impressions"].to_numpy(),
            clicks=cells["clicks"].to_numpy(),
            factors=survey.factors,
            membership=None,
            collision_bound=self._about["collision_bound"],
            read_items=lambda: self._read("items", list(roles.item)),
        )
        if roles.query is None:
            return counts
        return Counts(**{**vars(counts), "membership": self._read_membership(roles, counts)})

    def count_repeats_on_page(self, roles: Roles) -> int:
        return int(self._about["repeats_on_page"])

    def find_busiest_query(self, roles: Roles) -> object:
        return self._about["busiest_query"]

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        """The smallest items under each factor."""
        order = [(column, "ascending") for column in roles.item]
        found: dict[int, list[pa.Table]] = {factor: [] for factor in factors}
        for group in range(self._groups):
            cells = self._read("cells", ["factor"], group)["factor"].to_numpy()
            items = self._read("items", [*roles.item, CELLS], group)
            ends = np.cumsum(items[CELLS].to_numpy())
            for factor in factors:
                shown = np.searchsorted(ends, np.flatnonzero(cells == factor), side="right")
                some = items.select(list(roles.item)).take(pa.array(shown)).sort_by(order)
                found[factor].append(some.slice(0, each))
        return {factor: pa.concat_tables(some).sort_by(order).slice(0, each) for factor, some in found.items()}

    @cached_property
    def _groups(self) -> int:
        """Parts that the counts were written in."""
        return int(self._open_file("cells").num_row_groups)

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        raise EluteError(f"{self._folder} holds counts, without '{value}'; pass the log itself")

    def _read_membership(self, roles: Roles, counts: Counts) -> Membership:
        queries = int(self._about["queries"])
        if roles.items_within_queries:
            query = self._read("items", [QUERY])[QUERY].to_numpy()
            return Membership(queries, query, np.arange(counts.n_items, dtype=np.int32), counts.item_impressions)
        pairs = self._read("pairs")
        query, item, shown = (pairs[name].to_numpy() for name in ("query", "item", "impressions"))
        return Membership(queries, query, item.astype(np.int32), shown)

    def _read(self, name: str, columns: list[str] | None = None, group: int | None = None) -> pa.Table:
        """A file, or one of its row groups."""
        file = self._open_file(name)
        with self._translate_errors(name):
            return file.read(columns) if group is None else file.read_row_group(group, columns)

    def _open_file(self, name: str) -> pq.ParquetFile:
        with self._translate_errors(name):
            return pq.ParquetFile(self._folder / f"{name}.parquet")

    @contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowInvalid) as error:
            raise EluteError(f"cannot read {self._folder / name}.parquet; count the log again ({error})") from error


def _to_text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "nothing" if value is None else str(value)


def _to_json_value(value: object) -> str | float | None:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)

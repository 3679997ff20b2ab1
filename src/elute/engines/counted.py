"""A log that was counted before: the folder of `elute count` takes the log's place.

| file | what |
|---|---|
| `counts.json` | column roles, sizes, the source's fingerprint; written last: without it a folder is no counts |
| `factors.parquet` | the bias columns, impressions, clicks |
| `items.parquet` | the item columns, `elute_cells` (how many the item has) and `elute_query` (its query's number) |
| `cells.parquet` | factor, impressions and clicks, in the order of the items |
| `pairs.parquet` | query, item, impressions: where an item does not tell its query |
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import elute.files
from elute.counts import Counts, Membership
from elute.engines import Engine
from elute.errors import EluteError
from elute.progress import Progress
from elute.roles import Roles
from elute.structure import of_counts
from elute.survey import Survey

FORMAT = 1
MARK = "counts.json"
_CELLS, _QUERY = "elute_cells", "elute_query"


def is_counts(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a folder of counts."""
    return isinstance(source, str | Path) and (Path(source) / MARK).is_file()


def save(engine: Engine, roles: Roles, survey: Survey, counts: Counts, folder: str | Path) -> dict[str, Any]:
    """Write counts to a folder; gives what `counts.json` says."""
    target = Path(folder)
    if target.exists() and not is_counts(target) and (not target.is_dir() or any(target.iterdir())):
        raise EluteError(f"'{folder}' is there already and holds no counts; name another folder")
    (target / MARK).unlink(missing_ok=True)
    members, structure = counts.membership, of_counts(counts)
    items = counts.items.append_column(_CELLS, pa.array(np.diff(counts.offsets)))
    if members is not None and roles.items_within_queries:
        items = items.append_column(_QUERY, pa.array(members.query))
    elif members is not None:
        pairs = {"query": members.query, "item": members.item, "impressions": members.impressions}
        elute.files.write_parquet(target / "pairs.parquet", pa.table(pairs))
    totals = survey.factors.append_column("elute_impressions", pa.array(survey.impressions))
    elute.files.write_parquet(target / "factors.parquet", totals.append_column("elute_clicks", pa.array(survey.clicks)))
    elute.files.write_parquet(target / "items.parquet", items)
    cells = {"factor": counts.factor, "impressions": counts.impressions, "clicks": counts.clicks}
    elute.files.write_parquet(target / "cells.parquet", pa.table(cells))
    dominant = structure.busiest > int(survey.impressions.sum()) / 2
    about = {
        "format": FORMAT,
        "log": engine.label,
        "source": fingerprint(engine.files),
        "roles": asdict(roles),
        "rows": survey.rows,
        "usable": survey.usable,
        "unshown": survey.unshown,
        "nulls": survey.nulls,
        "queries": structure.queries,
        "collision_bound": counts.collision_bound,
        "repeats_on_page": engine.repeats_on_page(roles),
        "busiest_query": _plain(engine.busiest_query(roles)) if dominant else None,
    }
    elute.files.write_text(target / MARK, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return about


def fingerprint(files: list[str]) -> list[dict[str, Any]]:
    """What tells whether a file is still the one it was."""
    found = []
    for file in files:
        state = Path(file).stat()
        found.append({"file": str(Path(file).resolve()), "bytes": state.st_size, "changed_ns": state.st_mtime_ns})
    return found


class CountsEngine:
    """Counts in a folder. Refused where the log has changed since; where it is out of reach they are taken as they
    are."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        try:
            self._about: dict[str, Any] = json.loads((self._folder / MARK).read_text(encoding="utf-8"))
            if self._about["format"] != FORMAT:
                raise EluteError(f"{folder} holds counts of another version of elute: count the log again")
            names = dict(self._about["roles"])
            self.roles = Roles(item=tuple(names.pop("item")), bias=tuple(names.pop("bias")), **names)
        except (KeyError, TypeError, ValueError) as error:
            raise EluteError(f"{self._folder / MARK} is not what 'elute count' writes: {error}") from error
        self.label: str = self._about["log"]
        for then in self._about["source"]:
            if Path(then["file"]).exists() and fingerprint([then["file"]]) != [then]:
                again = f"elute count {then['file']} --out {folder}"
                raise EluteError(f"{then['file']} has changed since it was counted: count it again ({again} …)")

    @property
    def columns(self) -> list[str]:
        return list(self.roles.columns)

    @property
    def files(self) -> list[str]:
        return [str(then["file"]) for then in self._about["source"]]

    def close(self) -> None:
        """Nothing is held."""

    def problems(self, roles: Roles) -> list[str]:
        """Other columns than those that were counted."""
        mine = asdict(self.roles)
        return [
            f"these counts were made with {part} {_listed(mine[part])}, not {_listed(asked)}: count the log again"
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
        return of_counts(self.count(roles, survey, progress)).root

    def count(self, roles: Roles, survey: Survey, progress: Progress) -> Counts:
        progress("reading the counts", 0, 0)
        cells, sizes = self._read("cells"), self._read("items", [_CELLS])[_CELLS].to_numpy()
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
        return Counts(**{**vars(counts), "membership": self._membership(roles, counts)})

    def repeats_on_page(self, roles: Roles) -> int:
        return int(self._about["repeats_on_page"])

    def busiest_query(self, roles: Roles) -> object:
        return self._about["busiest_query"]

    def examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        """The smallest items under each factor."""
        cells, items = self._read("cells", ["factor"])["factor"].to_numpy(), self._read("items")
        ends = np.cumsum(items[_CELLS].to_numpy())
        order = [(column, "ascending") for column in roles.item]
        found = {}
        for factor in factors:
            shown = np.searchsorted(ends, np.flatnonzero(cells == factor), side="right")
            found[factor] = items.select(list(roles.item)).take(pa.array(shown)).sort_by(order).slice(0, each)
        return found

    def means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        raise EluteError(f"{self._folder} holds counts, not '{value}': give the log itself")

    def _membership(self, roles: Roles, counts: Counts) -> Membership:
        queries = int(self._about["queries"])
        if roles.items_within_queries:
            query = self._read("items", [_QUERY])[_QUERY].to_numpy()
            return Membership(queries, query, np.arange(counts.n_items, dtype=np.int32), counts.item_impressions)
        pairs = self._read("pairs")
        return Membership(queries, *(pairs[name].to_numpy() for name in ("query", "item", "impressions")))

    def _read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        try:
            return pq.read_table(self._folder / f"{name}.parquet", columns=columns)
        except (OSError, pa.ArrowInvalid) as error:
            raise EluteError(f"cannot read {self._folder / name}.parquet; count the log again ({error})") from error


def _listed(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "nothing" if value is None else str(value)


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)

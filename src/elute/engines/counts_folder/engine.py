"""A log that was counted before: the folder of `elute count` takes the log's place (`layout` has its files)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute._util import scratch
from elute.cells.counts import Counts, Membership
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.cells.structure import structure_from_counts
from elute.cells.survey import Survey
from elute.engines.counts_folder.filtering import choose_factors, write_kept
from elute.engines.counts_folder.layout import CELLS, FORMAT, MARK, QUERY
from elute.engines.fingerprint.compare import find_changed_source
from elute.engines.source_state import State
from elute.errors import EluteError
from elute.progress import Progress


class CountsEngine:
    """Counts in a folder. Refused where the log has changed since; where it is out of reach they are taken as they
    are."""

    def __init__(self, folder: str | Path, spill: str | Path | None = None) -> None:
        """`spill`: the folder for what is left of the counts where filters leave some out."""
        self._folder, self._spill = Path(folder), spill
        self._remove: Callable[[], None] | None = None
        try:
            self._about: dict[str, Any] = json.loads((self._folder / MARK).read_text(encoding="utf-8"))
            if self._about["format"] != FORMAT:
                raise EluteError(f"{folder} was written by another version of elute; count the log again")
            names = dict(self._about["roles"])
            self.roles = Roles(item=tuple(names.pop("item")), bias=tuple(names.pop("bias")), **names)
            self.filters = Filters.from_options(self._about.get("filters", {}))
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
        if self._remove is not None:
            self._remove()

    def filter(self, filters: Filters, roles: Roles) -> None:
        """Beyond the filters that the log was counted with. Of what does not pass nothing is read any more."""
        if filters.where not in (None, self.filters.where):
            problem = f"counts of {self.label} have no rows that `where=` could choose from"
            raise EluteError(f"{problem}; count {self.label} again with `elute.count` and `where=`")
        both = self.filters.and_then(filters)
        kept = choose_factors(self._read("factors"), roles, both)
        if not kept.any():
            raise both.refuse_empty(self.label)
        if not kept.all():
            target, self._remove = scratch.make_folder(self._spill)
            with self._translate_errors("cells"):
                self._about = write_kept(self._folder, self._about, roles, kept, target)
            self._folder = target
        self.filters = both

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
            rows_under=table["elute_rows" if "elute_rows" in table.column_names else "elute_impressions"].to_numpy(),
            keys=np.arange(table.num_rows, dtype=np.uint64),
            impressions=table["elute_impressions"].to_numpy(),
            clicks=table["elute_clicks"].to_numpy(),
            filtered=self._about.get("rows_filtered", 0),
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
        raise EluteError(f"{self.label} was given as counts, without '{value}'; pass the log itself")

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

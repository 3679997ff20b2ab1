"""A log that was counted before: the folder of `elute count` takes the log's place (`layout` has its files)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util import scratch
from elute.cells.counts import Counts, Membership
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.cells.structure import structure_from_counts
from elute.cells.survey import Survey
from elute.engines.counts_folder.filtering import choose_factors, write_kept
from elute.engines.counts_folder.held import HeldCounts
from elute.engines.counts_folder.reading import CountsFiles
from elute.engines.source_state import State
from elute.errors import EluteError
from elute.progress import Progress


class CountsEngine:
    """Counts in a folder, or those of its parts together."""

    def __init__(self, files: HeldCounts, spill: str | Path | None = None) -> None:
        """`spill`: the folder for what is left of the counts where filters leave some out."""
        self._files: HeldCounts = files
        self._spill = spill
        self._opened = files
        self._remove: Callable[[], None] | None = None
        self.roles, self.filters = self._files.roles, self._files.filters
        self.label: str = self._about["log"]

    @property
    def _about(self) -> dict[str, Any]:
        return self._files.about

    @property
    def exact(self) -> bool:
        return self._files.exact

    @property
    def columns(self) -> list[str]:
        return list(self.roles.columns)

    @property
    def state(self) -> list[State]:
        return list(self._about["source"])

    def close(self) -> None:
        self._opened.close()
        if self._remove is not None:
            self._remove()

    def filter(self, filters: Filters, roles: Roles) -> None:
        """Beyond the filters that the log was counted with. Of what does not pass nothing is read any more."""
        if filters.where not in (None, self.filters.where):
            problem = f"counts of {self.label} have no rows that `where=` could choose from"
            raise EluteError(f"{problem}; count {self.label} again with `elute.count` and `where=`")
        both = self.filters.and_then(filters)
        kept = choose_factors(self._files.factors, roles, both)
        if not kept.any():
            raise both.refuse_empty(self.label)
        if not kept.all():
            target, self._remove = scratch.make_folder(self._spill)
            write_kept(self._files, roles, kept, target)
            self._files = CountsFiles(target)
        self.filters = both

    def find_problems(self, roles: Roles) -> list[str]:
        """Other columns than those that were counted. How they act together is no matter of counting."""
        return compare_roles(self.roles, roles)

    def survey(self, roles: Roles) -> Survey:
        table = self._files.factors
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

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        progress("reading the counts", 0, 0)
        counts = Counts(
            **self._files.cells()._asdict(),
            factors=survey.factors,
            membership=None,
            collision_bound=self._files.collision_bound,
            read_items=lambda: self._files.items(list(roles.item)),
        )
        if roles.query is None:
            return counts
        return Counts(**{**vars(counts), "membership": self._read_membership(roles, counts)})

    def count_repeats_on_page(self, roles: Roles) -> int:
        return int(self._about["repeats_on_page"])

    def find_busiest_query(self, roles: Roles) -> object:
        return self._files.find_busiest_query()

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        """The smallest items under each factor."""
        order = [(column, "ascending") for column in roles.item]
        found: dict[int, list[pa.Table]] = {factor: [] for factor in factors}
        for group, cells in enumerate(self._files.cells_by_group()):
            items = self._files.items(list(roles.item), group)
            for factor in factors:
                shown = np.searchsorted(cells.offsets[1:], np.flatnonzero(cells.factor == factor), side="right")
                found[factor].append(items.take(pa.array(shown)).sort_by(order).slice(0, each))
        return {factor: pa.concat_tables(some).sort_by(order).slice(0, each) for factor, some in found.items()}

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        raise EluteError(f"{self.label} was given as counts, without '{value}'; pass the log itself")

    def _read_membership(self, roles: Roles, counts: Counts) -> Membership:
        if not roles.items_within_queries:
            return self._files.members(0, counts.item_impressions)
        query, every = self._files.query_of_item(), np.arange(counts.n_items, dtype=np.int32)
        return Membership(self._files.queries, query, every, counts.item_impressions)


def compare_roles(counted: Roles, asked: Roles) -> list[str]:
    """A sentence for each part in which columns that were counted are not those that are asked for."""
    mine = counted.to_dict()
    return [
        f"these counts were made with {part} {_to_text(mine[part])}, not {_to_text(wanted)}; count the log again"
        for part, wanted in asked.to_dict().items()
        if part != "formula" and wanted != mine[part]
    ]


def _to_text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "nothing" if value is None else str(value)

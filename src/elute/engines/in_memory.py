"""Counts in memory in a log's place: what is left of a log that somebody has counted already."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.cells.formula import formula_of
from elute.cells.roles import DEFAULT_CLICK, DEFAULT_QUERY, Roles
from elute.cells.structure import structure_from_counts
from elute.cells.survey import Survey
from elute.engines.source_state import State
from elute.errors import EluteError
from elute.progress import Progress


def infer_roles(counts: Counts) -> Roles:
    """The columns that counts were made from, as far as they tell: of the query only that there is one."""
    item = tuple(counts.items.column_names)
    query = None
    if counts.membership is not None:
        query = DEFAULT_QUERY if DEFAULT_QUERY in item or len(item) == 1 else item[0]
    bias, formula = tuple(counts.factors.column_names), formula_of(counts.factors)
    return Roles(item, bias, query, DEFAULT_CLICK, None, None, formula)


class InMemoryEngine:
    """Answers from cells; the rows they were counted from are gone."""

    label = "counts"

    def __init__(self, counts: Counts) -> None:
        self._counts, self.roles = counts, infer_roles(counts)

    @property
    def exact(self) -> bool:
        return self._counts.collision_bound == 0

    @property
    def columns(self) -> list[str]:
        return list(self.roles.columns)

    @property
    def state(self) -> list[State]:
        return []

    def close(self) -> None:
        """Nothing is held."""

    def find_problems(self, roles: Roles) -> list[str]:
        return []

    def survey(self, roles: Roles) -> Survey:
        counts, n = self._counts, self._counts.n_factors
        shown, clicks = (
            np.bincount(counts.factor, weights=amounts, minlength=n).astype(np.int64)
            for amounts in (counts.impressions, counts.clicks)
        )
        rows = int(shown.sum())
        return Survey(rows, rows, 0, {}, counts.factors, shown, np.arange(n, dtype=np.uint64), shown, clicks)

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        return structure_from_counts(self._counts).root

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        return self._counts

    def count_repeats_on_page(self, roles: Roles) -> int:
        return 0

    def find_busiest_query(self, roles: Roles) -> object:
        """Its number: names of queries are not kept unless they are part of items."""
        members = self._counts.membership
        if members is None:
            return None
        query = int(np.bincount(members.query, weights=members.impressions).argmax())
        if roles.query not in self._counts.items.column_names:
            return query
        item = int(members.item[np.flatnonzero(members.query == query)[0]])
        return self._counts.items[roles.query][item].as_py()

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        """The smallest items under each factor."""
        counts, order = self._counts, [(column, "ascending") for column in roles.item]
        of_cell = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
        found = {}
        for factor in factors:
            shown = counts.items.take(pa.array(of_cell[counts.factor == factor]))
            found[factor] = shown.sort_by(order).slice(0, each)
        return found

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        raise EluteError(f"these are counts, without '{value}'; pass the log itself")

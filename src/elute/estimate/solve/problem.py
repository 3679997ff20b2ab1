"""What every estimator works on: cells, under the factors that a merge plan leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells, Counts
from elute.cells.factors import describe_some, to_rows
from elute.cells.structure import connect
from elute.errors import EluteError
from elute.identify.components import number_components
from elute.kernels.jit import jit
from elute.kernels.merge import merge_cells, merge_factors

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


class MergingPlan(Protocol):
    """A merge plan, as far as a fit needs it."""

    def pairs_of(self, factors: pa.Table) -> NDArray[np.integer]:
        """The (n, 2) factor codes that must share one propensity."""
        ...


@dataclass(frozen=True, eq=False)
class Problem:
    """Cells, and how their factors stand to the log's: `merged` gives each factor of the log its factor here."""

    cells: Cells
    merged: Codes
    component: Codes
    """By factor here."""
    factors: pa.Table
    """The bias columns of the log's factors."""

    @property
    def n_items(self) -> int:
        return len(self.cells.offsets) - 1

    @property
    def n_factors(self) -> int:
        return len(self.component)

    @property
    def item_component(self) -> Codes:
        """By item; all factors of an item lie in one component."""
        return self.component[self.cells.factor[self.cells.offsets[:-1]]]

    def name_factors(self, factors: NDArray[np.integer]) -> str:
        """The first few of some factors in words."""
        return name_factors(self.factors, self.merged, factors)


def pose(counts: Counts, plan: MergingPlan | None) -> Problem:
    """The problem that `counts` pose once the factors joined by `plan` are one."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    merged = number_merged(counts.factors, plan)
    if plan is not None:
        cells = Cells(*merge_cells(*cells, merged))
    shown = total_by_factor(cells.factor, cells.impressions, int(merged.max()) + 1).astype(np.int64)
    return Problem(cells, merged, number_components(connect(counts, merged), shown).of_factor, counts.factors)


def number_merged(factors: pa.Table, plan: MergingPlan | None) -> Codes:
    """For every factor its number once those joined by `plan` are one."""
    if plan is None:
        return np.arange(factors.num_rows, dtype=np.int32)
    if getattr(plan, "method", "merge") != "merge":
        raise EluteError("a fit takes a merge plan; the swaps of a swap plan must be shown and logged first")
    return merge_factors(factors.num_rows, plan.pairs_of(factors))


def name_factors(table: pa.Table, merged: Codes, some: NDArray[np.integer]) -> str:
    """The first few of some merged factors in words; one goes by its first member."""
    first = np.unique(merged, return_index=True)[1][some]
    return describe_some(table.column_names, [list(row.values()) for row in to_rows(table, first)])


@jit
def total_by_factor(factor: Codes, amounts: Amounts, n_factors: int) -> Floats:
    """Sum over the cells of every factor."""
    out = np.zeros(n_factors)
    for cell in range(factor.shape[0]):
        out[factor[cell]] += amounts[cell]
    return out


@jit
def total_by_item(offsets: NDArray[np.int64], amounts: Amounts) -> Floats:
    """Sum over the cells of every item."""
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            out[item] += amounts[cell]
    return out

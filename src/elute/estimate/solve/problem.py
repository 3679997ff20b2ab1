"""What every estimator works on: cells, under the factors that a merge plan leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.offsets import take_groups
from elute._util.threads import map_threads, split_evenly
from elute.cells.counts import Amounts, Cells, Counts
from elute.cells.factors import describe_some, to_rows
from elute.errors import EluteError
from elute.identify.components import number_components
from elute.identify.effects.classes import join_classes
from elute.identify.effects.constraints import constrain
from elute.identify.effects.design import EffectDesign, find_design
from elute.kernels.blocks import join_blocks
from elute.kernels.equal_items import group_equal_items
from elute.kernels.forest import group_forest, merge_edges
from elute.kernels.jit import jit
from elute.kernels.merge import merge_cells, merge_factors

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

ENOUGH = 100
"""Linking clicks of a factor whose log-propensity has a standard error of .1, were all others known."""

_TENTH, _HANDFUL = 10.0, 5.0
_MANY = 1_000_000


class EqualItems(NamedTuple):
    """`first`: items that stand for others. `code`: by item, the place of the one that stands for it."""

    first: NDArray[np.int64]
    code: Codes


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
    design: EffectDesign | None = None
    """The effects that log propensities are sums of, if a formula ties them. Factors are then not merged: a plan is a
    constraint on effects."""

    @property
    def n_items(self) -> int:
        return len(self.cells.offsets) - 1

    @property
    def n_factors(self) -> int:
        return len(self.component)

    @cached_property
    def item_component(self) -> Codes:
        """By item; all factors of an item lie in one component."""
        return self.component[self.cells.factor[self.cells.offsets[:-1]]]

    @cached_property
    def equal(self) -> EqualItems:
        """Items with the same cells, of which one stands for all."""
        return EqualItems(*group_equal_items(*self.cells, np.arange(self.n_items)))

    @cached_property
    def reliable(self) -> NDArray[np.bool_]:
        """By factor here: whether it may be what others are measured by."""
        linking = total_linking_clicks(*self.cells[:2], self.cells.clicks, self.n_factors)
        return find_reliable(linking if self.design is None else share_links(self.design, linking), self.component)

    def name_factors(self, factors: NDArray[np.integer]) -> str:
        """The first few of some factors in words."""
        return name_factors(self.factors, self.merged, factors)


def pose(counts: Counts, plan: MergingPlan | None) -> Problem:
    """The problem that `counts` pose once the factors joined by `plan` are one."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    design = find_design(counts.factors)
    if design is not None:
        return _pose_tied(counts, cells, design, plan)
    merged = number_merged(counts.factors, plan)
    if plan is not None:
        cells = Cells(*merge_cells(*cells, merged))
    shown = total_by_factor(cells.factor, cells.impressions, int(merged.max()) + 1).astype(np.int64)
    return Problem(cells, merged, number_components(group_forest(counts.root, merged), shown).of_factor, counts.factors)


def _pose_tied(counts: Counts, cells: Cells, design: EffectDesign, plan: MergingPlan | None) -> Problem:
    """Where a formula ties factors: what a plan joins has equal sums of effects."""
    merged = np.arange(counts.n_factors, dtype=np.int32)
    shown = total_by_factor(cells.factor, cells.impressions, counts.n_factors).astype(np.int64)
    pairs = np.empty((0, 2), np.int64) if plan is None else require_merges(plan).pairs_of(counts.factors)
    root = join_classes(merge_edges(counts.root, pairs.astype(np.int32)), counts.factors)
    component = number_components(root, shown).of_factor
    return Problem(cells, merged, component, counts.factors, constrain(design, pairs))


def unite_equal(problem: Problem) -> tuple[Cells, NDArray[np.int64]]:
    """Cells in which one item has the counts of all that are equal to it, and the items that these are. A likelihood is
    the same: it is a sum over impressions, and equal items have the same relevance at its maximum."""
    first, code = problem.equal
    at, offsets = take_groups(problem.cells.offsets, first)
    kind: Any = problem.cells.impressions.dtype
    most = int(problem.cells.impressions.max(initial=0)) * problem.n_items
    if kind == np.uint32 and most >= 1 << 32:
        kind = np.uint64
    times = np.bincount(code, minlength=len(first)).repeat(np.diff(offsets)).astype(kind)
    shown, clicked = (amounts[at].astype(kind) * times for amounts in problem.cells[2:])
    return Cells(offsets, problem.cells.factor[at], shown, clicked), first


def number_merged(factors: pa.Table, plan: MergingPlan | None) -> Codes:
    """For every factor its number once those joined by `plan` are one."""
    if plan is None:
        return np.arange(factors.num_rows, dtype=np.int32)
    return merge_factors(factors.num_rows, require_merges(plan).pairs_of(factors))


def require_merges(plan: MergingPlan) -> MergingPlan:
    """A plan that merges."""
    if getattr(plan, "method", "merge") != "merge":
        raise EluteError("a fit takes a merge plan; the swaps of a swap plan must be shown and logged first")
    return plan


def name_factors(table: pa.Table, merged: Codes, some: NDArray[np.integer]) -> str:
    """The first few of some merged factors in words; one goes by its first member."""
    first = np.unique(merged, return_index=True)[1][some]
    return describe_some(table.column_names, [list(row.values()) for row in to_rows(table, first)])


def find_reliable(linking: Floats, component: Codes) -> NDArray[np.bool_]:
    """Which factors are measured well enough to be the reference of their component.

    The largest propensity is 1 (Theorem 1 leaves the scale open), but the largest of all may be a factor seen six
    times, and everything would then be known as badly as that. So only factors count that have `ENOUGH` clicks by items
    which were shown elsewhere too, or a tenth of the most that any of their component has, and no fewer than a handful
    where one has as many."""
    most = np.zeros(int(component.max(initial=0)) + 1)
    np.maximum.at(most, component, linking)
    return np.asarray(linking >= np.minimum(ENOUGH, np.maximum(most / _TENTH, np.minimum(most, _HANDFUL)))[component])


def find_scales(propensity: Floats, component: Codes, reliable: NDArray[np.bool_]) -> Floats:
    """By component: the largest propensity of those that may be the reference; 1 where none is above 0."""
    largest = np.zeros(int(component.max(initial=0)) + 1)
    np.maximum.at(largest, component[reliable], np.nan_to_num(propensity[reliable]))
    lacks = largest == 0
    if lacks.any():
        np.maximum.at(largest, component, np.where(lacks[component], np.nan_to_num(propensity), 0.0))
    largest[largest == 0] = 1.0
    return largest


def share_links(design: EffectDesign, linking: Floats) -> Floats:
    """Linking clicks that stand behind a factor's effects: the fewest, of its terms, that its level has."""
    levels = [np.bincount(one.level, linking)[one.level] for one in design.terms]
    return np.asarray(np.min(levels, axis=0))


@jit
def total_linking_clicks(offsets: NDArray[np.int64], factor: Codes, clicks: Amounts, n_factors: int) -> Floats:
    """By factor: clicks of items that were shown under another factor too; all others say nothing of propensities."""
    out = np.zeros(n_factors)
    for item in range(offsets.shape[0] - 1):
        if offsets[item + 1] - offsets[item] > 1:
            for cell in range(offsets[item], offsets[item + 1]):
                out[factor[cell]] += clicks[cell]
    return out


def total_by_factor(factor: Codes, amounts: Amounts, n_factors: int) -> Floats:
    """Sum over the cells of every factor."""
    return np.asarray(sum(_map_cells(lambda own: _total(factor[own], amounts[own], n_factors), factor, n_factors)))


def count_by_factor(factor: Codes, n_factors: int) -> NDArray[np.int64]:
    """The cells of every factor."""
    return np.asarray(sum(_map_cells(lambda own: _count(factor[own], n_factors), factor, n_factors)))


def _map_cells(work: Callable[[slice], NDArray[Any]], factor: Codes, n_factors: int) -> list[NDArray[Any]]:
    """On ranges of cells, side by side, unless an answer is as long as they are. How many there are depends on the
    cells alone, and with it how sums are rounded."""
    parts = 1 if n_factors > _MANY else max(1, min(32, len(factor) // _MANY))
    return map_threads(work, [slice(*ends) for ends in split_evenly(len(factor), parts)])


@jit
def _total(factor: Codes, amounts: Amounts, n_factors: int) -> Floats:
    out = np.zeros(n_factors)
    for cell in range(factor.shape[0]):
        out[factor[cell]] += amounts[cell]
    return out


@jit
def _count(factor: Codes, n_factors: int) -> NDArray[np.int64]:
    out = np.zeros(n_factors, np.int64)
    for code in factor:
        out[code] += 1
    return out


def total_by_item(offsets: NDArray[np.int64], amounts: Amounts) -> Floats:
    """Sum over the cells of every item."""
    return join_blocks(_total_by_item, offsets, amounts)


@jit
def _total_by_item(offsets: NDArray[np.int64], amounts: Amounts) -> Floats:
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            out[item] += amounts[cell]
    return out

"""`elute.swap`: the fewest and cheapest items to show elsewhere so that a log becomes recoverable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import is_position, to_rows
from elute.checking.check import Check
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.progress import Progress, silent
from elute.repair.allowed import Allowed, FittedCells
from elute.repair.budget import Objective, Spending, spend
from elute.repair.merge_plan import plan_merges
from elute.repair.plan import MergePlan, Swap, SwapPlan
from elute.repair.swap import SpanningSwaps, SwapArrays, compute_costs, find_minimum_swaps, impressions_needed

Floats = NDArray[np.float64]

TARGET_SE = 0.1


@dataclass(frozen=True)
class Constraints:
    """What a real system allows. Positions are values of the position column; items are rows of item columns."""

    max_position_change: float | None = None
    only_positions: Sequence[float] | None = None
    exclude_items: pa.Table | None = None
    min_impressions: int = 0


def plan_swaps(
    check: Check,
    relevance: Floats | None = None,
    propensity: Floats | None = None,
    *,
    target_se: float = TARGET_SE,
    constraints: Constraints | None = None,
    budget: int | None = None,
    objective: Objective = "max",
    first: MergePlan | None = None,
    date: str | None = None,
    progress: Progress = silent,
) -> SwapPlan:
    """Plan the swaps of least total cost (Algorithm 2): K - 1 of them for K components.

    `relevance` by item and `propensity` by factor (codes of `check.counts`) may come from anywhere; without
    them the position-based model is fitted to the log under a merge plan, as the paper does. Each swap says
    how many impressions bring the standard error of the new link's log-propensity ratio under `target_se`.
    With a `budget` of impressions the plan also spends what the links leave, where it most reduces the
    largest (or the mean) standard error.
    `first`: the merge plan to fit under, by default the cheapest.
    """
    allowed = _translate_constraints(check, constraints or Constraints())
    counts = check.counts
    if relevance is None or propensity is None:
        fit = PBM(relevance_prior="none", progress=progress).fit(counts, first or plan_merges(check))
        relevance, propensity = fit.relevance_values_, fit.propensity_
    cells = FittedCells(counts.offsets, counts.factor, counts.impressions, relevance, propensity, check.found.of_factor)
    found = find_minimum_swaps(cells, allowed)
    spending = None
    if budget is not None:
        spending = spend(cells, found.swaps, budget, allowed, objective)
    return SwapPlan(
        provenance=check.log.provenance(date),
        components_before=check.components,
        components_after=check.components - len(found.swaps.item),
        cost=float(found.swaps.cost.sum()),
        swaps=_list_swaps(check, cells, found.swaps, target_se, spending),
        apart=_describe_apart(check, found),
        precision=_describe_precision(check, spending),
    )


def _translate_constraints(check: Check, constraints: Constraints) -> Allowed:
    counts = check.counts
    column = next((c for c in counts.factors.column_names if is_position(counts.factors, c)), None)
    by_position = constraints.max_position_change is not None or constraints.only_positions is not None
    if by_position and column is None:
        raise EluteError(
            f"a limit on positions needs a numeric bias column named position, rank or slot; "
            f"the bias columns are: {', '.join(counts.factors.column_names)}"
        )
    position = counts.factors[column].cast(pa.float64()).to_numpy() if column is not None else None
    only = None
    if constraints.only_positions is not None and position is not None:
        only = np.isin(position, list(constraints.only_positions))
        if not only.any():
            raise EluteError(f"no factor has one of the positions {', '.join(map(str, constraints.only_positions))}")
    excluded = None
    if constraints.exclude_items is not None:
        excluded = _match_items(counts.items, constraints.exclude_items)
    return Allowed(only, excluded, constraints.min_impressions, constraints.max_position_change, position)


def _match_items(items: pa.Table, wanted: pa.Table) -> NDArray[np.bool_]:
    """A mask of the items that agree with a row of `wanted` in its columns (some or all of the item columns)."""
    keys = [column for column in wanted.column_names if column in items.column_names]
    if not keys:
        raise EluteError(f"`exclude_items=` needs one of the columns {', '.join(items.column_names)}")
    casted = pa.table({key: wanted[key].cast(items[key].type) for key in keys})
    numbered = items.select(keys).append_column("elute_row", pa.array(np.arange(items.num_rows)))
    hit = numbered.join(casted, keys=keys, join_type="left semi")["elute_row"].to_numpy()
    mask = np.zeros(items.num_rows, np.bool_)
    mask[hit] = True
    return mask


def _list_swaps(
    check: Check, cells: FittedCells, links: SwapArrays, target_se: float, spending: Spending | None
) -> tuple[Swap, ...]:
    """The connecting swaps, cheapest first, then what a budget adds."""
    item, source, target = links.item, links.source, links.target
    planned: list[int | None] = [None] * len(item)
    if spending is not None:
        item, source, target = spending.item, spending.source, spending.target
        planned = spending.impressions.tolist()
    r, o = cells.relevance[item], cells.propensity
    cost = compute_costs(r, o[source], o[target])
    known = _look_up_impressions(cells, item, source)
    needed = impressions_needed(r, o[source], o[target], known, target_se)
    expected = np.minimum(r * o[target], 1.0)
    counts = check.counts
    fields = zip(
        to_rows(counts.items, item),
        to_rows(counts.factors, source),
        to_rows(counts.factors, target),
        cost.tolist(),
        needed.target.tolist(),
        needed.source.tolist(),
        expected.tolist(),
        planned,
        strict=True,
    )
    return tuple(Swap(*values) for values in fields)


def _look_up_impressions(cells: FittedCells, item: NDArray[np.int64], factor: NDArray[np.int64]) -> NDArray[np.int64]:
    """Impressions of given cells, 0 where there is none."""
    found = np.zeros(len(item), np.int64)
    for row, (x, t) in enumerate(zip(item.tolist(), factor.tolist(), strict=True)):
        own = slice(cells.offsets[x], cells.offsets[x + 1])
        found[row] = int(cells.impressions[own][cells.factor[own] == t].sum())
    return found


def _describe_apart(check: Check, found: SpanningSwaps) -> tuple[dict[str, Any], ...]:
    of_factor = check.found.of_factor
    return tuple(
        {
            "component": int(part),
            "factor": to_rows(check.counts.factors, [int((of_factor == part).argmax())])[0],
            "reason": why,
        }
        for part, why in zip(found.apart, found.reasons, strict=True)
    )


def _describe_precision(check: Check, spending: Spending | None) -> tuple[dict[str, Any], ...]:
    if spending is None:
        return ()
    names = to_rows(check.counts.factors, range(check.counts.n_factors))
    errors = zip(names, spending.se_before, spending.se_after, strict=True)
    return tuple(
        {"factor": name, "se_before": _finite_or_none(before), "se_after": _finite_or_none(after)}
        for name, before, after in errors
    )


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

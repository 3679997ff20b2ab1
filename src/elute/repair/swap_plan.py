"""`elute.swap`: what to show elsewhere so that a log becomes recoverable, as a search engine could carry it out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import to_rows
from elute.checking.check import Check
from elute.identify.effects.classes import join_pairs
from elute.identify.effects.design import find_design
from elute.progress import Progress, silent
from elute.repair.allowed import Allowed
from elute.repair.plan import MergePlan, SwapPlan
from elute.repair.spending.objective import Objective
from elute.repair.steps import Swap
from elute.repair.swapping.anywhere import list_more_anywhere, list_swaps_anywhere
from elute.repair.swapping.comparison import compare_designs, describe_forecast
from elute.repair.swapping.constraints import Constraints, translate
from elute.repair.swapping.designs import TOP
from elute.repair.swapping.exchange import show_exchanged
from elute.repair.swapping.expected import Outlook, expect, to_fitted_cells
from elute.repair.swapping.feasible import NO_SWAPS_YET, FeasibleSwaps, list_swaps
from elute.repair.swapping.forecast import Errors, Forecast, find_effects
from elute.repair.swapping.links import PartLink, find_links, price
from elute.repair.swapping.movable import Movable, find_movable
from elute.repair.swapping.obstacles import Obstacle, find_obstacles
from elute.repair.swapping.spending import spend_within
from elute.repair.swapping.traffic import Traffic, count_pages, find_traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TARGET_SE = 0.1


class _Ground(NamedTuple):
    """What every step of planning looks at."""

    check: Check
    constraints: Constraints
    allowed: Allowed
    movable: Movable
    traffic: Traffic
    expected: Outlook

    def list_links(self, expected: Outlook, pages: float, allowed: Allowed) -> FeasibleSwaps:
        """Swaps that link parts."""
        given = self.traffic, expected, self.movable.kind, self.movable.place, pages, allowed
        if self.check.log.roles.query is None:
            return list_swaps_anywhere(self.check.counts, *given)
        return list_swaps(*given, linking=True)

    def list_more(self) -> FeasibleSwaps:
        """Swaps that make propensities more certain."""
        given = self.traffic, self.expected, self.movable.kind, self.movable.place, self.pages, self.allowed
        if self.check.log.roles.query is None:
            return list_more_anywhere(self.check.counts, *given)
        return list_swaps(*given, linking=False)

    @property
    def pages(self) -> float:
        """How many of the log's pages of a query may be changed, as a share."""
        return self.constraints.share * self.constraints.lengths


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
    top: int = TOP,
    date: str | None = None,
    progress: Progress = silent,
) -> SwapPlan:
    """Plan the swaps that join all parts of the log, by a spanning tree of least cost (Algorithm 2), within what a
    search engine can do: items move along movable columns, within pages of their query, at places that these have, on
    as many of the pages as may be changed. Where a formula ties factors: by the links of least cost that leave no
    ratio open.

    `relevance` by item and `propensity` by factor (codes of `check.counts`) may come from anywhere; without
    them the position-based model is fitted to the log under `first`, a merge plan, as the paper does. Swaps are shown
    often enough to bring the standard error of each link's log-propensity ratio under `target_se`, where traffic allows
    it. With a `budget` of impressions the plan also spends what the links leave, where it most reduces the
    largest (or the mean) standard error. `top`: how many results the design shuffles that the plan is compared with.
    """
    limits = constraints or Constraints()
    movable = find_movable(check, limits.fixed, limits.movable)
    expected = expect(check, relevance, propensity, first, list(movable.columns), progress)
    progress("looking for swaps", 0, 0)
    allowed = translate(check, limits)
    ground = _Ground(check, limits, allowed, movable, find_traffic(check), expected)
    effect = float(np.median(find_effects(check)))
    needed = effect / target_se**2
    pages = count_pages(ground.traffic, movable.kind, movable.place)
    free = np.floor(ground.pages * pages).astype(np.int64)
    factors = check.counts.factors
    links = find_links(ground.list_links(expected, ground.pages, allowed), expected, free, needed, factors)
    chosen, unspent = _Chosen.of_links(links), 0
    if budget is not None:
        cells, effects = to_fitted_cells(check.counts, expected), find_effects(check)
        more, design = ground.list_more(), find_design(factors)
        spent = spend_within(cells, chosen.swaps, more, free, budget, objective, effects, design)
        chosen, unspent = _Chosen(spent.swaps, spent.impressions), spent.unspent
    swaps = chosen.swaps
    shown = show_exchanged(ground.traffic, movable, swaps.item, swaps.target, swaps.query, chosen.impressions)
    forecast = Forecast(check, expected, shown)
    before, after = forecast.measure(0.0), forecast.measure()
    changed = np.bincount(chosen.swaps.query, chosen.impressions, len(pages))
    longest = float((changed / np.maximum(pages, 1)).max(initial=0.0)) / limits.share
    share = chosen.impressions / np.maximum(pages[chosen.swaps.query] * longest, 1e-9)
    lost = chosen.impressions * chosen.swaps.loss
    joined = join_pairs(expected.part, _Chosen.of_links(links).swaps.pairs, factors)
    obstacles = find_obstacles(ground.list_links, ground.traffic, expected, movable, allowed, ground.pages, joined)
    return SwapPlan(
        provenance=check.log.provenance(date),
        components_before=check.components,
        components_after=int(join_pairs(check.found.of_factor.astype(np.int64), swaps.pairs, factors).max()) + 1,
        cost=float(price(chosen.swaps, expected).sum()),
        swaps=_list_swaps(ground, chosen, share, lost, budget is not None),
        parts_before=expected.parts,
        parts_after=int(joined.max(initial=0)) + 1,
        infeasible=_describe_obstacles(check, joined[expected.part], obstacles),
        precision=_describe_precision(check, before, after) if budget is not None else (),
        forecast=describe_forecast(
            before, after, float(chosen.impressions.sum()), max(float(lost.sum()), 0.0), longest, limits.log_days
        ),
        limits={
            "target_se": target_se,
            "share": limits.share,
            "log_days": limits.log_days,
            "fixed": movable.fixed,
            "movable": list(movable.columns),
            "guessed": expected.knows_nothing,
            "notes": _write_notes([effect / link.information for link in links], target_se, unspent),
        },
        designs=_compare(ground, target_se, after, top) if expected.parts > 1 or budget is not None else (),
    )


class _Chosen(NamedTuple):
    """Swaps, and how often each is shown."""

    swaps: FeasibleSwaps
    impressions: Ints

    @classmethod
    def of_links(cls, links: list[PartLink]) -> _Chosen:
        swaps = NO_SWAPS_YET
        for link in links:
            swaps = swaps.append(link.swaps)
        return cls(swaps, np.concatenate([np.empty(0, np.int64), *(link.impressions for link in links)]))


def _compare(ground: _Ground, target_se: float, reached: Errors, top: int) -> tuple[dict[str, Any], ...]:
    """Standard experiments, to the precision that the plan reaches, or else to the one that was asked for."""
    limits, largest = ground.constraints, reached.largest if reached.parts == 1 else None
    return compare_designs(
        ground.check,
        ground.expected,
        ground.traffic,
        ground.movable.kind,
        ground.allowed.position,
        target_se if largest is None else largest,
        limits.share,
        limits.log_days,
        top,
    )


def _write_notes(variances: list[float], target_se: float, unspent: int) -> list[str]:
    """What falls short of what was asked."""
    notes = []
    short = [np.sqrt(variance) for variance in variances if variance > 1.02 * target_se**2]
    if short:
        links = "1 link" if len(short) == 1 else f"{len(short):,} links"
        notes.append(
            f"the traffic of its queries brings {links} to a standard error of {max(short):.2g}, not {target_se:g}; "
            "more pages (--share, --days) bring it further"
        )
    if unspent:
        notes.append(f"{unspent:,} impressions of the budget could not be used: no query has the traffic")
    return notes


def _list_swaps(ground: _Ground, chosen: _Chosen, share: Floats, lost: Floats, spent: bool) -> tuple[Swap, ...]:
    swaps, shown, counts = chosen.swaps, chosen.impressions.tolist(), ground.check.counts
    items = to_rows(counts.items, swaps.item)
    fields = zip(
        items,
        to_rows(counts.factors, swaps.source),
        to_rows(counts.factors, swaps.target),
        price(swaps, ground.expected).tolist(),
        shown,
        ground.expected.probability(swaps.item, swaps.target).tolist(),
        np.maximum(lost, 0.0).tolist(),
        share.tolist(),
        _name_queries(ground, swaps, items),
        shown if spent else [None] * len(shown),
        strict=True,
    )
    return tuple(Swap(*values) for values in fields)


def _name_queries(ground: _Ground, swaps: FeasibleSwaps, items: list[dict[str, Any]]) -> list[Any]:
    query, names = ground.check.log.roles.query, ground.traffic.names
    if names is not None:
        return [row["query"] for row in to_rows(pa.table({"query": names}), swaps.query)]
    return [None if query is None else row.get(query) for row in items]


def _describe_obstacles(check: Check, part: Ints, obstacles: list[Obstacle]) -> tuple[dict[str, Any], ...]:
    first = np.array([int((part == one.part).argmax()) for one in obstacles], np.int64)
    rows = to_rows(check.counts.factors, first)
    return tuple(
        {"part": one.part, "component": int(check.found.of_factor[at]), "factor": row, "reason": one.reason}
        for one, at, row in zip(obstacles, first, rows, strict=True)
    )


def _describe_precision(check: Check, before: Errors, after: Errors) -> tuple[dict[str, Any], ...]:
    names = to_rows(check.counts.factors, range(check.counts.n_factors))
    errors = zip(names, before.log_se, after.log_se, strict=True)
    return tuple(
        {"factor": name, "se_before": _finite_or_none(one), "se_after": _finite_or_none(two)}
        for name, one, two in errors
    )


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

"""Bounds instead of silence: what can be said across components, and how many pairs of items that puts in order.

Within a component clicks determine ratios, and one propensity is open. All that is known of these is a system of
difference constraints (`constraints`), whose sharp intervals are shortest paths (`paths`). Errors are such that
everything holds at once with 95% confidence (`limits`), if clicks follow r·o.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.text import format_count, format_share, to_one_line
from elute.bounds import constraints as system
from elute.bounds.assumptions import Assumptions, KnownRatios, Ordered
from elute.bounds.constraints import DifferenceSystem, constrain
from elute.bounds.contradiction import describe_cycle
from elute.bounds.cross import Crossed, order_pairs
from elute.bounds.limits import CONFIDENCE
from elute.bounds.paths import find_highest, measure_all
from elute.bounds.scales import Scales, find_scales
from elute.cells.factors import describe, to_rows
from elute.known.precision import Precision, shorten
from elute.progress import Progress, silent

SHOWN = 20
"""Components that are listed."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bounds:
    """`highest`: of every node of the system, the largest φ; `cycle`: constraints that cannot all hold. `crossed`: None
    where the log has no queries, or where constraints contradict each other."""

    precision: Precision
    scales: Scales
    found: DifferenceSystem
    highest: Floats
    cycle: Ints
    ordered: tuple[Ordered, ...]
    given: KnownRatios | None
    crossed: Crossed | None

    @property
    def consistent(self) -> bool:
        """Whether the assumptions, and r and o as probabilities, agree with the log."""
        return not len(self.cycle)

    @property
    def contradiction(self) -> str | None:
        """Which constraints contradict the log; None where none do."""
        if self.consistent:
            return None
        component = self.precision.sample.problem.component
        said = [one.said for one in self.ordered]
        return describe_cycle(self.found, self.cycle, said, self._name, lambda factor: int(component[factor]))

    def relate(self, references: Ints, base: int) -> tuple[Floats, Floats]:
        """The interval of o(t)/o(base) of some factors."""
        if not self.consistent:
            return np.full(len(references), np.nan), np.full(len(references), np.nan)
        ahead, back = (measure_all(self.found.arrows, self.highest, base + 1, reverse) for reverse in (False, True))
        with np.errstate(over="ignore"):
            return np.exp(-back[references + 1]), np.exp(ahead[references + 1])

    @cached_property
    def intervals(self) -> tuple[Floats, Floats]:
        """By part, of its reference's propensity relative to that of the largest component's."""
        return self.relate(self.scales.references, int(self.scales.references[0]))

    def tabulate(self, propensity: Floats | None = None) -> pa.Table:
        """`component`, the bias columns of its reference, and `low, high` of the reference's propensity relative to
        that of the largest component. `propensity`: by factor of the log, of a fit whose references are to be taken."""
        problem, references = self.precision.sample.problem, self.scales.references
        if propensity is not None:
            own = np.flatnonzero(propensity == 1.0)
            part = self.scales.part[problem.merged[own]]
            references = references.copy()
            references[part[::-1]] = problem.merged[own][::-1]
        low, high = self.relate(references, int(references[0]))
        rows = np.unique(problem.merged, return_index=True)[1][references]
        table = problem.factors.take(pa.array(rows))
        names = {"component": pa.array(self.scales.component)}
        names |= {column: table[column] for column in table.column_names}
        return pa.table(names | {"low": pa.array(low), "high": pa.array(high)})

    @property
    def sentence(self) -> str:
        """What bounds add."""
        parts, crossed = len(self.scales.component), self.crossed
        if not self.consistent:
            return f"The constraints contradict the log: {self.contradiction}"
        if parts == 1:
            return "The log is one component: bounds have nothing to add to its ratios."
        if crossed is None:
            return (
                f"Scales of {format_count(parts)} components are bounded; the log has no queries whose pairs to order."
            )
        if not crossed.pairs:
            return "No query has items of two components: bounds have no pair to order."
        share = format_share(crossed.ordered / crossed.pairs)
        ranked = f"{format_count(crossed.rankable)} of {format_count(crossed.queries)} queries can be ranked with them"
        return (
            f"Bounds put {share} of the {format_count(crossed.pairs)} pairs across components in order, with "
            f"{CONFIDENCE:.0%} confidence in all of them; {ranked}."
        )

    @property
    def notes(self) -> list[str]:
        """What was left out, or is approximate."""
        scales, sample, out = self.scales, self.precision.sample, []
        split = int((np.bincount(scales.component) > 1).sum())
        if split:
            words = "component falls" if split == 1 else "components fall"
            out.append(f"{split:,} {words} into parts that no chain of clicks ties: each has a scale of its own")
        loose = int((~scales.tied).sum())
        if loose:
            out.append(
                f"{loose:,} factors have no ratio to their component by clicks: they have an upper limit at most"
            )
        if self.given is not None and self.given.left_out:
            out.append(f"{self.given.left_out:,} rows of the propensities given are of no factor, or without a number")
        if sample.share < 1:
            out.append(f"items and queries are those of a sample: {sample.problem.n_items:,} of {sample.items:,} items")
        if self.crossed is None and self.consistent:
            out.append("the log has no queries in memory: no pairs were compared")
        return out + ([] if self.crossed is None else list(self.crossed.notes))

    def to_dict(self) -> dict[str, Any]:
        """The field `bounds` of `elute check --json`."""
        crossed = self.crossed
        whole = crossed is not None and self.precision.sample.share == 1 and not crossed.sampled
        return {
            "sentence": self.sentence,
            "confidence": CONFIDENCE,
            "constraints": [{"what": what, "count": count} for what, count in self._list_constraints() if count],
            "consistent": self.consistent,
            "contradiction": self.contradiction,
            "components": self._list_components(),
            "cross_pairs": None if crossed is None else crossed.pairs,
            "ordered_pairs_share": None if crossed is None or not crossed.pairs else crossed.ordered / crossed.pairs,
            "rankable_queries_with_bounds": crossed.rankable if crossed is not None and whole else None,
            "rankable_share_with_bounds": None if crossed is None else crossed.rankable / crossed.queries,
            "notes": self.notes,
        }

    def _list_constraints(self) -> list[tuple[str, int]]:
        kind = self.found.kind
        words = {
            system.OBSERVED: "no propensity is above 1: factors",
            system.RATIO: "ratios of propensities by clicks: factors",
            system.RATE: "no relevance is above 1: factors, by all their clicks",
            system.ITEM: "no relevance is above 1: factors, by their best item",
            system.UNCLICKED: "shown in vain: a factor, and a component whose clicked items it had",
            system.GIVEN: "--propensities: factors",
        }
        words |= {system.ORDERED + k: f"{one.said}: pairs of factors" for k, one in enumerate(self.ordered)}
        halves = (system.RATIO, system.GIVEN)
        return [(what, int((kind == number).sum()) // (1 + (number in halves))) for number, what in words.items()]

    def _list_components(self) -> list[dict[str, Any]]:
        if not self.consistent:
            return []
        scales, sample = self.scales, self.precision.sample
        low, high = self.intervals
        nodes = scales.references + 1
        lowest = -measure_all(self.found.arrows, self.highest, 0, reverse=True)[nodes]
        shown = np.bincount(scales.part, sample.shown)
        first = np.unique(sample.problem.merged, return_index=True)[1]
        named = to_rows(sample.problem.factors, first[scales.references[:SHOWN]])
        return [
            {
                "component": int(scales.component[part]) + 1,
                "factor": factor,
                "low": shorten(float(low[part])),
                "high": _shorten(float(high[part])),
                "propensity_low": shorten(float(np.exp(lowest[part]))),
                "propensity_high": _shorten(float(np.exp(self.highest[nodes[part]]))),
                "factors": int((scales.part[sample.problem.merged] == part).sum()),
                "impressions": int(shown[part]),
            }
            for part, factor in enumerate(named)
        ]

    def _name(self, factor: int) -> str:
        problem = self.precision.sample.problem
        row = np.unique(problem.merged, return_index=True)[1][factor]
        return to_one_line(describe(to_rows(problem.factors, [int(row)])[0]), 80)


def _shorten(value: float) -> float | None:
    """None where there is no upper bound, which JSON cannot write."""
    return shorten(value) if np.isfinite(value) else None


def find_bounds(precision: Precision, assumptions: Assumptions, progress: Progress = silent) -> Bounds:
    """From what was measured of a log, and what is assumed beside it."""
    progress("bounding what clicks leave open", 0, 0)
    sample = precision.sample
    factors = sample.problem.factors
    ordered, given = assumptions.order(factors), assumptions.match(factors)
    scales = find_scales(precision, 0 if given is None else int((given.log_se > 0).sum()))
    found = constrain(precision, scales, ordered, given)
    highest, cycle = find_highest(found.arrows, found.nodes)
    crossed = None
    if not len(cycle) and sample.members is not None:
        members = sample.members
        if not sample.fair.all():
            fair = sample.fair[members[0]]
            members = members[0][fair], members[1][fair]
        crossed = order_pairs(members, scales.item_group, found.items, found.arrows, highest)
    return Bounds(precision, scales, found, highest, cycle, tuple(ordered), given, crossed)

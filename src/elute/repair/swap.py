"""Node intervention (Algorithm 2, Eq. 3 to 6): which items to show where, as a minimum spanning tree of swaps.

Showing item x, known under factor s, under factor t of another component costs
C(x, s, t) = (1/o(s) + 1/o(t))/r(x) - 2. Both parts of the choice separate: an item's best source is its
factor of largest o, a component's best target is its factor of largest o. Write f_B(b) for the least
cost of bringing an item of component B to a target with 1/o = b; it rises with b. Let m be the component
with the least b of all, and B*(A) ≠ A the component whose items come cheapest to A. Then a swap from B
into A ≠ m is never needed unless B = B*(A), since the path B → m ← B*(A) → A costs no more at any step:

    f_B(b_m) ≤ f_B(b_A),    f_B*(b_m) ≤ f_B*(b_A) ≤ f_B(b_A).

So a minimum spanning tree lies within 2(K - 1) swaps: every component's cheapest into m, and the cheapest
into every component from outside. A limit on the change of position is met by treating the targets of
each position on their own, with the sources in reach of it; the argument holds for each.

The cheapest items are found by lower envelopes (`elute.repair.envelope`), what a swap may do is in
`elute.repair.allowed`, and `elute.repair.swap_plan` makes a plan of the swaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, join_edges, singletons
from elute.repair.allowed import (
    ANYTHING,
    Allowed,
    FittedCells,
    all_pass,
    explain_apart,
    list_source_conditions,
    list_target_conditions,
)
from elute.repair.envelope import find_cheapest_of_another, find_cheapest_of_each

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST = 1 << 62
"""Where a target can only just be reached, the number may not fit an integer."""


class SwapArrays(NamedTuple):
    """Show `item`, known under factor `source`, under factor `target`, at `cost` (Eq. 3)."""

    item: Ints
    source: Ints
    target: Ints
    cost: Floats

    def take(self, which: Ints) -> SwapArrays:
        """These swaps, in this order."""
        return SwapArrays(self.item[which], self.source[which], self.target[which], self.cost[which])

    def append(self, more: SwapArrays) -> SwapArrays:
        """These swaps and more."""
        return SwapArrays(
            np.concatenate((self.item, more.item)),
            np.concatenate((self.source, more.source)),
            np.concatenate((self.target, more.target)),
            np.concatenate((self.cost, more.cost)),
        )


NO_SWAPS = SwapArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class SpanningSwaps(NamedTuple):
    """The swaps, cheapest first. If they could not join everything: the components left out of the
    largest part (`apart`), and why for each."""

    swaps: SwapArrays
    apart: Ints
    reasons: list[str]


class ImpressionsNeeded(NamedTuple):
    """`target`: impressions of the new pair. `source`: further ones of the source cell, beyond the log's."""

    target: Ints
    source: Ints


@jit
def _find_best_sources(offsets: Ints, factor: NDArray[np.int32], usable: Mask, propensity: Floats) -> Ints:
    """The factor of largest propensity among the usable cells of each item (-1: none)."""
    best = np.full(offsets.shape[0] - 1, -1)
    for item in range(best.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            if usable[cell] and (best[item] < 0 or propensity[t] > propensity[best[item]]):
                best[item] = t
    return best


def _find_best_targets(cells: FittedCells, usable: Mask) -> Ints:
    """The usable factor of largest propensity in each component that has one; ties go to the smaller."""
    targets = np.flatnonzero(usable)
    order = targets[np.lexsort((-cells.propensity[targets], cells.component[targets]))]
    return order[np.unique(cells.component[order], return_index=True)[1]]


def _list_candidates(cells: FittedCells, sources: Mask, targets: Mask) -> SwapArrays:
    """Swaps between these cells and factors that hold a minimum spanning tree of all of them."""
    r, o, component = cells.relevance, cells.propensity, cells.component.astype(np.int64)
    target = _find_best_targets(cells, targets)
    if not len(target):
        return NO_SWAPS
    source = _find_best_sources(cells.offsets, cells.factor, sources, o)
    item = np.flatnonzero(source >= 0)
    source = source[item]
    v = 1 / r[item]
    u = v / o[source]
    b = 1 / o[target]
    colour, colours = component[source], int(component.max()) + 1

    hub = int(b.argmin())
    leaving = find_cheapest_of_each(u, v, colour, colours, b[hub])
    leaving = leaving[(leaving >= 0) & (np.arange(colours) != component[target[hub]])]
    coming = find_cheapest_of_another(u, v, colour, b, component[target], colours)
    reached = np.flatnonzero(coming >= 0)

    chosen = np.concatenate((leaving, coming[reached]))
    to = np.concatenate((np.full(len(leaving), target[hub]), target[reached]))
    cost = compute_costs(r[item[chosen]], o[source[chosen]], o[to])
    return SwapArrays(item[chosen], source[chosen], to, cost)


def compute_costs(relevance: Floats, source: Floats, target: Floats) -> Floats:
    """Eq. 3, and 0 where r·o is above 1 so far that it would be below: a variance is not. The least tree stays the
    least, since no order is turned round."""
    return np.maximum((1 / source + 1 / target) / relevance - 2, 0.0)


def _list_all_candidates(cells: FittedCells, sources: Mask, targets: Mask, allowed: Allowed) -> SwapArrays:
    if allowed.max_position_change is None or allowed.position is None:
        return _list_candidates(cells, sources, targets)
    swaps = NO_SWAPS
    for value in np.unique(allowed.position[targets]):
        near = np.abs(allowed.position - value) <= allowed.max_position_change
        here = _list_candidates(cells, sources & near[cells.factor], targets & (allowed.position == value))
        swaps = swaps.append(here)
    return swaps


def find_minimum_swaps(cells: FittedCells, allowed: Allowed = ANYTHING) -> SpanningSwaps:
    """The swaps of least total cost that join the components 0 to K - 1: K - 1 of them, or fewer where
    `allowed` leaves components apart.

    Items with a relevance, and factors with a propensity, of 0 or NaN are not used.
    """
    sources, targets = (
        all_pass(list_source_conditions(cells, allowed)),
        all_pass(list_target_conditions(cells, allowed)),
    )
    swaps = _list_all_candidates(cells, sources, targets, allowed)
    swaps = swaps.take(np.lexsort((swaps.target, swaps.source, swaps.item, swaps.cost)))
    component = cells.component.astype(np.int64)
    parent = singletons(int(component.max()) + 1)
    swaps = swaps.take(np.flatnonzero(join_edges(parent, component[swaps.source], component[swaps.target])))
    apart = _find_outside_largest(find_roots(parent), component[cells.factor[sources]])
    return SpanningSwaps(swaps, apart, explain_apart(cells, allowed, apart) if len(apart) else [])


def _find_outside_largest(part: NDArray[np.int32], component_of_sources: Ints) -> Ints:
    """The components outside the part with most components (among equals: with most usable sources)."""
    in_part = np.bincount(part, minlength=len(part))
    sources = np.bincount(part[component_of_sources], minlength=len(part))
    return np.flatnonzero(part != np.lexsort((-np.arange(len(part)), sources, in_part))[-1])


def impressions_needed(
    relevance: Floats, source: Floats, target: Floats, at_source: NDArray[np.integer], target_se: float
) -> ImpressionsNeeded:
    """Impressions that bring the standard error of log o(s) - log o(t), seen through one item, to
    `target_se`: with p = r·o its variance is (1/p_s - 1)/n_s + (1/p_t - 1)/n_t.

    `at_source` are the n_s in the log. Where they alone exceed the target, no number at the new pair is
    enough; then both need the same n (Proposition 1), and `source` says how many are missing there.
    """
    odds_source = np.maximum(1 / (relevance * source) - 1, 0.0)
    odds_target = np.maximum(1 / (relevance * target) - 1, 0.0)
    left = target_se**2 - odds_source / np.maximum(at_source, 1)
    enough = (left > 0) & (at_source > 0)
    alone = odds_target / np.where(enough, left, 1.0)
    each = (odds_source + odds_target) / target_se**2
    needed = np.clip(np.ceil(np.where(enough, alone, each)), 1, _MOST).astype(np.int64)
    return ImpressionsNeeded(needed, np.where(enough, 0, needed - at_source.astype(np.int64)))

"""The pairs of least distortion where a formula ties factors: a basis of what is open, not a tree.

As many independent pairs as comparisons are missing leave nothing open (`elute.identify.effects.independent`). Which
they are decides how often their differences enter ratios of relevances: one pair that compares far apart settles what
lies between, and enters less than once. With P the places of components by some basis (`places`), a pair of components
i and j stands for the row P_i - P_j, and the places by another basis of rows M are P·M⁻¹. The longest distance of
these, in costs, is to be least.

One missing comparison, or few bases in all: each is looked at. Else pairs are exchanged one by one as long as that
helps. Then a linear programme says how far off that may be: no basis has i and j nearer than the cheapest combination
of all pairs that compares them.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from elute.repair.distortion.centre import MOST_DISTANCES, MOST_EXACT
from elute.repair.distortion.linkage import link_all, link_hubs
from elute.repair.distortion.paths import Floats, Ints
from elute.repair.distortion.places import ClassPlaces, find_farthest, measure_longest

_BASES = 5_000
"""Sets of pairs up to which each is looked at."""

_TRIED, _ROUNDS = 30, 50
"""Exchanges of each pair that are tried, and rounds of them."""

_HUBS = 8
_SINGULAR, _BETTER = 1e-9, 1 - 1e-9


class LeastDistortion(NamedTuple):
    """Pairs and their costs, what they span, and by which share of itself the longest distance may be too long: 0 where
    no other pairs do better, None where that is not known."""

    pairs: Ints
    costs: Floats
    spanned: ClassPlaces
    gap: float | None


def find_least_distortion(
    features: Floats, component: NDArray[np.integer], pairs: Ints, costs: Floats, spanned: ClassPlaces
) -> LeastDistortion:
    """Of pairs of factors that leave nothing open. `pairs`, `costs`, `spanned`: those of least cost."""
    n, ways = spanned.at.shape
    sizes = np.bincount(component).astype(np.float64)
    every = n <= MOST_EXACT and float(len(component) ** 2 - (sizes**2).sum()) / 2 <= MOST_DISTANCES
    links = link_all(features, component) if every else link_hubs(features, component, np.arange(min(_HUBS, n)))
    others, cost = np.concatenate((pairs, links.pairs)), np.concatenate((costs, links.cost))
    rows = spanned.at[component[others[:, 0]]] - spanned.at[component[others[:, 1]]]
    if comb(len(others), ways) <= _BASES or ways == 1:
        chosen, gap = _look_at_all(spanned.at, rows, cost), 0.0 if every else None
    else:
        chosen, gap = _exchange(spanned.at, rows, cost), None
    at = ClassPlaces(spanned.at @ np.linalg.inv(rows[chosen]))
    longest = measure_longest(at, cost[chosen])
    if gap is None and every:
        least = _bound(spanned.at, rows, cost, find_farthest(at, cost[chosen]))
        gap = max(longest / least - 1, 0.0) if least > 0 else None
    order = np.lexsort((others[chosen, 1], others[chosen, 0], cost[chosen]))
    at = ClassPlaces(np.round(at.at[:, order] - at.at[0, order], 9))
    return LeastDistortion(others[chosen[order]], cost[chosen[order]], at, gap)


def _look_at_all(at: Floats, rows: Floats, cost: Floats) -> Ints:
    ways = at.shape[1]
    if ways == 1:
        apart = np.abs(rows[:, 0])
        return np.array([np.divide(cost, apart, out=np.full(len(cost), np.inf), where=apart > _SINGULAR).argmin()])
    best, least = np.arange(ways), measure_longest(ClassPlaces(at), cost[:ways])  # the first are those of least cost
    for some in combinations(range(len(rows)), ways):
        own = np.array(some)
        if abs(np.linalg.det(rows[own])) > _SINGULAR:
            longest = measure_longest(ClassPlaces(at @ np.linalg.inv(rows[own])), cost[own])
            if longest < least * _BETTER:
                best, least = own, longest
    return best


def _exchange(at: Floats, rows: Floats, cost: Floats) -> Ints:
    """From the pairs of least cost, one by one while that helps."""
    chosen = np.arange(at.shape[1])
    least = measure_longest(ClassPlaces(at), cost[chosen])
    for _ in range(_ROUNDS):
        before = least
        for slot in range(len(chosen)):
            inverse = np.linalg.inv(rows[chosen])
            own, share = at @ inverse, rows @ inverse
            apart = np.abs(share[:, slot])
            worth = np.divide(cost, apart, out=np.full(len(cost), np.inf), where=apart > _SINGULAR)
            for other in np.argsort(worth, kind="stable")[:_TRIED]:
                if not np.isfinite(worth[other]) or other in chosen:
                    continue
                moved = own - np.outer(own[:, slot], share[other] / share[other, slot])
                moved[:, slot] = own[:, slot] / share[other, slot]
                tried = chosen.copy()
                tried[slot] = other
                longest = measure_longest(ClassPlaces(moved), cost[tried])
                if longest < least * _BETTER:
                    chosen, least = tried, longest
                    break
        if least >= before * _BETTER:
            break
    return chosen


def _bound(at: Floats, rows: Floats, cost: Floats, ends: tuple[int, int]) -> float:
    """How near two components can be by any pairs."""
    sums = csr_array(rows.T)
    found = linprog(
        np.concatenate((cost, cost)), A_eq=hstack((sums, -sums)), b_eq=at[ends[0]] - at[ends[1]], method="highs"
    )
    return float(found.fun) if found.success else 0.0

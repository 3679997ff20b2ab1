"""A budget of impressions, within the pages that queries have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.repair.allowed import FittedCells
from elute.repair.budget import Spending, spend
from elute.repair.spending.objective import Objective
from elute.repair.swapping.feasible import FeasibleSwaps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 4


class Spent(NamedTuple):
    """Swaps, how often each is shown, and what of the budget found no use."""

    swaps: FeasibleSwaps
    impressions: Ints
    unspent: int


def spend_within(
    cells: FittedCells,
    links: FeasibleSwaps,
    more: FeasibleSwaps,
    pages: Ints,
    budget: int,
    objective: Objective,
    effect: Floats,
) -> Spent:
    """Divide a budget among the swaps `links` that join parts and `more`. No query gives more than its `pages`: where
    one is asked for too many, those of its swaps that got most keep theirs, and the budget is divided again."""
    n = len(cells.propensity)
    more = more.take(~np.isin(more.query * n + more.target, links.query * n + links.target))
    every = links.append(more)
    for _ in range(_ROUNDS):
        first, rest = every.take(np.arange(len(links.item))), every.take(np.arange(len(links.item), len(every.item)))
        spending = spend(
            cells, first.to_candidates(), rest.to_candidates(), budget, objective=objective, dispersion=effect
        )
        given = _find_given(every, spending, n)
        asked = np.bincount(every.query, given, len(pages))
        if not (asked > pages).any():
            break
        short = (asked > pages)[every.query]
        every = every._replace(most=np.where(short, _keep_largest(every.query, given, pages), every.most))
    given = np.minimum(given, every.most)
    kept = np.flatnonzero(given)
    return Spent(every.take(kept), given[kept], budget - int(given.sum()))


def _keep_largest(query: Ints, given: Ints, pages: Ints) -> Ints:
    """What every swap keeps of what it was given if a query's pages go to its largest first."""
    order = np.lexsort((-given, query))
    before = np.cumsum(given[order]) - given[order]
    start = np.searchsorted(query[order], query[order])
    out = np.empty_like(given)
    out[order] = np.clip(pages[query[order]] - (before - before[start]), 0, given[order])
    return out


def _find_given(every: FeasibleSwaps, spending: Spending, n_factors: int) -> Ints:
    """Impressions by swap."""
    key = every.item * n_factors + every.target
    order = np.argsort(key, kind="stable")
    row = order[np.searchsorted(key[order], spending.item * n_factors + spending.target)]
    out = np.zeros(len(key), np.int64)
    out[row] = spending.impressions
    return out

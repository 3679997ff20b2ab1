"""A budget of impressions, within the pages that queries have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.identify.effects.design import EffectDesign
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
    design: EffectDesign | None = None,
) -> Spent:
    """Divide a budget among the swaps `links` that join parts and `more`. No query gives more than its `pages`: where
    one is asked for too many, its swaps share them, links first, and the budget is divided again."""
    n, first = len(cells.propensity), len(links.item)
    more = more.take(~np.isin(more.query * n + more.target, links.query * n + links.target))
    every = links.append(more)
    usable, limits = min(budget, int(pages.sum())), every.most
    for _ in range(_ROUNDS):
        joining, rest = every.take(np.arange(first)), every.take(np.arange(first, len(every.item)))
        spending = spend(
            cells,
            joining.to_candidates(),
            rest.to_candidates(),
            usable,
            objective=objective,
            dispersion=effect,
            design=design,
        )
        given = _find_given(every, spending, n)
        asked = np.bincount(every.query, given, len(pages))
        if not (asked > pages).any():
            break
        short = (asked > pages)[every.query]
        every = every._replace(most=np.where(short, _share_pages(every.query, given, pages, first), every.most))
    given = np.minimum(given, every.most)
    given += _use_rest(every.query, given, limits, pages, usable - int(given.sum()))
    kept = np.flatnonzero(given)
    return Spent(every.take(kept), given[kept], budget - int(given.sum()))


def _share_pages(query: Ints, given: Ints, pages: Ints, links: int) -> Ints:
    """What every swap keeps of what it was given: a query's pages go to its links (the first so many swaps), then to
    the others, each as much as another that was given as much or more."""
    out = np.zeros_like(given)
    left = pages.copy()
    for start, end in ((0, links), (links, len(given))):
        waiting = np.bincount(query[start:end], minlength=len(pages))
        for at in (start + np.argsort(given[start:end], kind="stable")).tolist():
            q = query[at]
            out[at] = min(given[at], left[q] // waiting[q])
            left[q] -= out[at]
            waiting[q] -= 1
    return out


def _use_rest(query: Ints, given: Ints, most: Ints, pages: Ints, rest: int) -> Ints:
    """What is left of a budget, to swaps that were given most, as far as they and the pages of their queries go."""
    out, left = np.zeros_like(given), pages - np.bincount(query, given, len(pages)).astype(np.int64)
    for at in np.argsort(-given, kind="stable").tolist() if rest > 0 else []:
        out[at] = min(rest, left[query[at]], most[at] - given[at]) if given[at] else 0
        left[query[at]] -= out[at]
        rest -= out[at]
    return out


def _find_given(every: FeasibleSwaps, spending: Spending, n_factors: int) -> Ints:
    """Impressions by swap."""
    key = every.item * n_factors + every.target
    order = np.argsort(key, kind="stable")
    row = order[np.searchsorted(key[order], spending.item * n_factors + spending.target)]
    out = np.zeros(len(key), np.int64)
    out[row] = spending.impressions
    return out

"""Which swaps join the parts, and how often each is to be shown.

A link between two parts may rest on several items: each gives I(n) = 1/(1/S + (1 - p)/(n·p)) in n impressions, about
the ratio of propensities across it, and these add up. A link is to have 1/se² in all. Parts are joined by a spanning
tree, by the links of least cost (Eq. 3, as in Algorithm 2) among those whose queries have the traffic, then by those
which come closest. Within a link the items that can tell most are taken until they could give twice what is needed, and
share the impressions so that the fewest do: n = S/ω·(√(ω/λ) - 1), ω = p/(1 - p), with one λ for all. A query lends one
item to a link, and its pages that may be changed are shared evenly by the links that want them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.unionfind import find_roots, join_edges, singletons
from elute.repair.swap import compute_costs
from elute.repair.swapping.expected import Outlook
from elute.repair.swapping.feasible import FeasibleSwaps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SPARE = 2.0
"""How many times what is needed the chosen items could give together."""

_WHOLE = 0.99
"""The share of what can be had that a link takes where that is too little."""

_HALVINGS = 60


class PartLink(NamedTuple):
    """Two parts, the swaps that join them, how often each is to be shown, and the information that makes."""

    a: int
    b: int
    swaps: FeasibleSwaps
    impressions: Ints
    information: float


def find_links(candidates: FeasibleSwaps, expected: Outlook, pages: Ints, needed: float) -> list[PartLink]:
    """A spanning tree, or as much of one as there are swaps for, that gives every link the information `needed`;
    `pages`: of every query, how many may be changed."""
    if not len(candidates.item):
        return []
    candidates, pairs, member = _choose_items(candidates, expected)
    reach = np.bincount(member, candidates.strength)
    cost = np.full(len(pairs), np.inf)
    np.minimum.at(cost, member, price(candidates, expected._replace(relevance=expected.typical)))
    enough = reach >= needed
    order = np.lexsort((pairs[:, 1], pairs[:, 0], np.where(enough, cost, -reach), ~enough))
    parent = singletons(expected.parts)
    chosen = order[join_edges(parent, pairs[order, 0], pairs[order, 1])]
    rows = np.argsort(member, kind="stable")
    first = np.searchsorted(member[rows], np.arange(len(pairs) + 1))
    groups = [candidates.take(rows[first[link] : first[link + 1]]) for link in chosen]
    waiting = np.zeros(len(pages), np.int64)
    for swaps in groups:
        waiting[swaps.query] += 1
    left, links = pages.copy(), []
    for link, swaps in zip(chosen, groups, strict=True):
        fair = -(-left[swaps.query] // waiting[swaps.query])
        swaps = swaps._replace(most=np.minimum(swaps.most, fair))
        links.append(_fill(int(pairs[link, 0]), int(pairs[link, 1]), swaps, expected, needed))
        left[links[-1].swaps.query] -= links[-1].impressions
        waiting[swaps.query] -= 1
    return [link for link in links if len(link.impressions)]


def _choose_items(candidates: FeasibleSwaps, expected: Outlook) -> tuple[FeasibleSwaps, Ints, Ints]:
    """The strongest swap of every query for every pair of parts, the pairs, and the pair of each swap."""
    ends = np.sort(np.column_stack((expected.home[candidates.item], expected.part[candidates.target])), axis=1)
    pairs, member = np.unique(ends, axis=0, return_inverse=True)
    member = member.reshape(-1)
    order = np.lexsort((-candidates.strength, candidates.query, member))
    kept = order[np.r_[True, (np.diff(member[order]) != 0) | (np.diff(candidates.query[order]) != 0)]]
    return candidates.take(kept), pairs, member[kept]


def join_parts(expected: Outlook, links: list[PartLink]) -> Ints:
    """By part, its number once these links hold."""
    parent = singletons(expected.parts)
    join_edges(parent, np.array([x.a for x in links], np.int64), np.array([x.b for x in links], np.int64))
    return np.unique(find_roots(parent), return_inverse=True)[1].reshape(-1)


def price(candidates: FeasibleSwaps, expected: Outlook) -> Floats:
    """Eq. 3, with click probabilities below 1: the variance of a link that rests on one impression of the item at each
    end; never below 0."""
    p = expected.probability(candidates.item, candidates.source)
    q = expected.probability(candidates.item, candidates.target)
    return compute_costs(np.ones(len(p)), p, q)


def _fill(a: int, b: int, swaps: FeasibleSwaps, expected: Outlook, needed: float) -> PartLink:
    odds = expected.odds(swaps.item, swaps.target)
    swaps = swaps._replace(strength=inform(swaps.most, odds, expected.known[swaps.item]))
    order = np.argsort(-swaps.strength, kind="stable")
    reach = np.cumsum(swaps.strength[order])
    wanted = _SPARE * needed if reach[-1] >= needed else _WHOLE * float(reach[-1])
    swaps = swaps.take(order[: min(int(np.searchsorted(reach, wanted)) + 1, len(order))])
    odds, known = expected.odds(swaps.item, swaps.target), expected.known[swaps.item]
    shown = share_impressions(odds, known, swaps.most, needed)
    kept = shown > 0
    carried = inform(shown, odds, known)
    return PartLink(a, b, swaps.take(kept), shown[kept], float(carried.sum()))


def inform(shown: NDArray[np.number], odds: Floats, known: Floats) -> Floats:
    """I(n) of every item."""
    gain = shown * odds
    return np.asarray(gain * known / (gain + known))


def share_impressions(odds: Floats, known: Floats, most: Ints, needed: float) -> Ints:
    """The fewest impressions that give `needed` in all; all that may be had where they do not."""
    if inform(most, odds, known).sum() <= needed:
        return most.copy()
    low, high = 0.0, float(odds.max())
    for _ in range(_HALVINGS):
        price_of_one = (low + high) / 2
        shown = _best_impressions(odds, known, most, price_of_one)
        low, high = (price_of_one, high) if inform(shown, odds, known).sum() >= needed else (low, price_of_one)
    best = np.minimum(np.ceil(_best_impressions(odds, known, most, low)), most).astype(np.int64)
    return _drop_idle(best, odds, known, needed)


def _best_impressions(odds: Floats, known: Floats, most: Ints, price_of_one: float) -> Floats:
    """Where one more impression tells `price_of_one`."""
    wanted = known / odds * (np.sqrt(odds / max(price_of_one, np.finfo(float).tiny)) - 1.0)
    return np.clip(wanted, 0.0, most)


def _drop_idle(shown: Ints, odds: Floats, known: Floats, needed: float) -> Ints:
    """Without the items that rounding up has made superfluous, the least first."""
    carried = inform(shown, odds, known)
    order = np.argsort(carried, kind="stable")
    spare = carried.sum() - needed
    idle = order[: int(np.searchsorted(np.cumsum(carried[order]), spare, side="right"))]
    out = shown.copy()
    out[idle] = 0
    return out

"""Which swaps join the parts, and how often each is to be shown.

A link between two parts may rest on several items: each gives I(n) = 1/(1/S + (1 - p)/(n·p)) in n impressions, about
the ratio of propensities across it, and these add up. A link is to have 1/se² in all. Parts are joined by a spanning
tree, by the links of least cost (Eq. 3, as in Algorithm 2) among those whose queries have the traffic, then by those
which come closest. Within a link the items that can tell most are taken until they could give twice what is needed, and
share the impressions so that the fewest do: n = S/ω·(√(ω/λ) - 1), ω = p/(1 - p), with one λ for all. A query lends one
item to a link, and its pages that may be changed are shared evenly by the links that want them.

Where a formula ties factors, fewer links do than a tree has (`elute.identify.effects.independent`), and swaps between
different parts may make the same comparison: they are one link. A swap whose ratio is the c-th power of what the link
compares counts c² times there. The longest comparison, to which `se` belongs, has c = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.identify.effects.classes import root_classes
from elute.identify.effects.independent import compare_pairs, keep_independent
from elute.kernels.unionfind import join_edges, singletons
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
    """The swaps that join two parts, how often each is to be shown, and the information that makes."""

    swaps: FeasibleSwaps
    impressions: Ints
    information: float


def find_links(
    candidates: FeasibleSwaps, expected: Outlook, pages: Ints, needed: float, factors: pa.Table
) -> list[PartLink]:
    """A spanning tree, or as much of one as there are swaps for, that gives every link the information `needed`;
    `pages`: of every query, how many may be changed."""
    if not len(candidates.item):
        return []
    candidates, pairs, member, weight = _choose_items(candidates, expected, factors)
    reach = np.bincount(member, weight * candidates.strength)
    cost = np.full(len(pairs), np.inf)
    np.minimum.at(cost, member, price(candidates, expected._replace(relevance=expected.typical)) / weight)
    enough = reach >= needed
    order = np.lexsort((pairs[:, 1], pairs[:, 0], np.where(enough, cost, -reach), ~enough))
    root = root_classes(expected.part)
    chosen = order[join_edges(singletons(len(root)), pairs[order, 0], pairs[order, 1])]
    chosen = chosen[keep_independent(pairs[chosen], root, factors)]
    rows = np.argsort(member, kind="stable")
    first = np.searchsorted(member[rows], np.arange(len(pairs) + 1))
    groups = [rows[first[link] : first[link + 1]] for link in chosen]
    waiting = np.zeros(len(pages), np.int64)
    for group in groups:
        waiting[candidates.query[group]] += 1
    left, links = pages.copy(), []
    for group in groups:
        swaps = candidates.take(group)
        fair = -(-left[swaps.query] // waiting[swaps.query])
        swaps = swaps._replace(most=np.minimum(swaps.most, fair))
        links.append(_fill(swaps, expected, needed, weight[group]))
        left[links[-1].swaps.query] -= links[-1].impressions
        waiting[swaps.query] -= 1
    return [link for link in links if len(link.impressions)]


def _choose_items(
    candidates: FeasibleSwaps, expected: Outlook, factors: pa.Table
) -> tuple[FeasibleSwaps, Ints, Ints, Floats]:
    """The strongest swap of every query for every comparison of parts; the comparisons, each by the first factors of
    two parts; the comparison of each swap, and how much it counts there."""
    root = root_classes(expected.part)
    first = np.unique(expected.part, return_index=True)[1]
    ends = np.sort(np.column_stack((first[expected.home[candidates.item]], root[candidates.target])), axis=1)
    member, length = compare_pairs(ends, root, factors)
    weight = length**2
    least = np.lexsort((ends[:, 1], ends[:, 0], member))
    pairs = ends[least[np.r_[True, np.diff(member[least]) != 0]]]
    order = np.lexsort((-weight * candidates.strength, candidates.query, member))
    kept = order[np.r_[True, (np.diff(member[order]) != 0) | (np.diff(candidates.query[order]) != 0)]]
    return candidates.take(kept), pairs, member[kept], weight[kept]


def price(candidates: FeasibleSwaps, expected: Outlook) -> Floats:
    """Eq. 3, with click probabilities below 1: the variance of a link that rests on one impression of the item at each
    end; never below 0."""
    p = expected.probability(candidates.item, candidates.source)
    q = expected.probability(candidates.item, candidates.target)
    return compute_costs(np.ones(len(p)), p, q)


def _fill(swaps: FeasibleSwaps, expected: Outlook, needed: float, weight: Floats) -> PartLink:
    odds, known = weight * expected.odds(swaps.item, swaps.target), weight * expected.known[swaps.item]
    strength = inform(swaps.most, odds, known)
    order = np.argsort(-strength, kind="stable")
    reach = np.cumsum(strength[order])
    wanted = _SPARE * needed if reach[-1] >= needed else _WHOLE * float(reach[-1])
    order = order[: min(int(np.searchsorted(reach, wanted)) + 1, len(order))]
    swaps, odds, known = swaps.take(order), odds[order], known[order]
    shown = share_impressions(odds, known, swaps.most, needed)
    kept = shown > 0
    carried = inform(shown, odds, known)
    return PartLink(swaps.take(kept), shown[kept], float(carried.sum()))


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

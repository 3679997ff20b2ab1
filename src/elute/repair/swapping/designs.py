"""Standard experiments, to compare a plan with: shuffling the top of the page, and swapping neighbours.

- **Top k** (Joachims et al. 2017): on a share of the pages the first k results come in random order.
- **FairPairs** (Radlinski and Joachims 2006): on a share of the pages neighbours are paired, from the first or from the
  second place on, and every pair is shown in either order with equal chance. So a result stays with ½, and moves one up
  or down with ¼ each.
- **RandPair** (Wang et al. 2018): on a share of the pages one pair of neighbours, drawn at random, is swapped.

Each shows the items of a query where the query's pages show the others, in proportion to how often they were shown.
Kinds of pages (fixed bias columns) stay apart.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.repair.swapping.expected import Outlook
from elute.repair.swapping.forecast import ShownAnew
from elute.repair.swapping.traffic import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Name = Literal["top k", "FairPairs", "RandPair"]

NAMES: tuple[Name, ...] = ("top k", "FairPairs", "RandPair")

TOP = 10


class Design(NamedTuple):
    """What a design shows if it takes all pages for as long as the log did, and what users lose then."""

    name: str
    shown: ShownAnew
    moved: float
    """Impressions elsewhere than without it."""
    users_lose: float


def draw_up(name: Name, traffic: Traffic, expected: Outlook, kind: Ints, position: Floats, top: int = TOP) -> Design:
    """A design on the pages of this log; `position`: of every factor."""
    item, factor, shown, moved = _show(*traffic[:4], kind, position, NAMES.index(name), top)
    label = f"top {top} shuffled" if name == "top k" else name
    after = _add_by_factor(expected, item, factor, shown)
    before = _add_by_factor(expected, *_find_touched(traffic, kind, position, name, top))
    return Design(label, ShownAnew(item, factor, shown), moved, max(0.0, float(before - after)))


def _add_by_factor(expected: Outlook, item: Ints, factor: Ints, shown: Floats) -> float:
    """Outlook clicks."""
    return float(shown @ expected.probability(item, factor))


def _find_touched(traffic: Traffic, kind: Ints, position: Floats, name: Name, top: int) -> tuple[Ints, Ints, Floats]:
    """The rows whose impressions a design takes, as they are shown without it."""
    rows = np.ones(len(traffic.item), np.bool_)
    if name == "top k":
        rows = _rank_rows(traffic.offsets, traffic.factor, kind, position) < top
    return traffic.item[rows], traffic.factor[rows], traffic.impressions[rows].astype(np.float64)


@jit
def _rank_rows(offsets: Ints, factor: Ints, kind: Ints, position: Floats) -> Ints:
    """The rank of every row's position among those of its query and kind, from 0."""
    out = np.empty(factor.shape[0], np.int64)
    for q in range(offsets.shape[0] - 1):
        places = np.unique(factor[offsets[q] : offsets[q + 1]])
        for row in range(offsets[q], offsets[q + 1]):
            t = factor[row]
            own = np.unique(position[places[kind[places] == kind[t]]])
            out[row] = np.searchsorted(own, position[t])
    return out


@jit
def _show(
    offsets: Ints, item: Ints, factor: Ints, shown: Ints, kind: Ints, position: Floats, design: int, top: int
) -> tuple[Ints, Ints, Floats, float]:
    """(item, factor, impressions) on all pages of the log, and how many of these are elsewhere than without it."""
    n, moved = 0, 0.0
    for fill in range(2):
        to_item, to_factor, amount = np.empty(n * fill, np.int64), np.empty(n * fill, np.int64), np.empty(n * fill)
        n = 0
        for q in range(offsets.shape[0] - 1):
            begin, end = offsets[q], offsets[q + 1]
            places = np.unique(factor[begin:end])
            having = np.zeros(places.shape[0])
            for row in range(begin, end):
                having[np.searchsorted(places, factor[row])] += shown[row]
            for row in range(begin, end):
                s = factor[row]
                alike = kind[places] == kind[s]
                own = np.unique(position[places[alike]])
                rank = int(np.searchsorted(own, position[s]))
                k = min(top, own.shape[0])
                if design == 0 and rank >= k:
                    continue
                for other in range(own.shape[0]):
                    share = 0.0
                    if design == 0 and other < k:
                        share = 1.0 / k
                    elif design > 0 and own.shape[0] == 1:
                        share = 1.0
                    elif design == 1:
                        share = _pair_share(rank, other, own.shape[0])
                    elif design == 2:
                        chance = 1.0 / (own.shape[0] - 1)
                        ways = int(rank > 0) + int(rank < own.shape[0] - 1)
                        share = 1.0 - ways * chance if other == rank else chance * (abs(other - rank) == 1)
                    if share > 0.0:
                        moved += fill * share * shown[row] * (other != rank)
                        there = alike & (position[places] == own[other])
                        if other == rank:  # it stays under its own factor
                            there = places == s
                        for at in np.flatnonzero(there):
                            if fill:
                                to_item[n], to_factor[n] = item[row], places[at]
                                amount[n] = share * shown[row] * having[at] / having[there].sum()
                            n += 1
    return to_item, to_factor, amount, moved


@jit
def _pair_share(rank: int, other: int, places: int) -> float:
    """How often FairPairs shows the result of a rank at another: pairs begin at the first or the second place."""
    share = 0.0
    for begin in range(2):
        partner = rank + 1 if (rank - begin) % 2 == 0 else rank - 1
        if rank < begin or partner >= places or partner < begin:
            share += 0.5 * (other == rank)
        elif other in (rank, partner):
            share += 0.25
    return share

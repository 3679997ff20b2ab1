"""The swaps that a search engine could make: an item of a query, at another place that pages of this query have.

A swap stays within the query and within the kind of factor that its fixed columns make it (`movable`). For each place t
of a query at most one item is proposed for each part that it would link: the one that tells most if it takes all the
pages that may be had, c = δS/(δ + S) with S what is known of it and δ = m·p/(1-p) for m pages at click probability p,
of an item as is typical for where it was shown (see `expected`).
One item a place: so no page is planned twice.

What users lose by one impression of x at t, where y̅ is what the query shows there: with f(s) the share of the query's
pages on which x stands at s, and the one in its place goes where x was,

    Σ f(s)·(o(s) - o(t))·(r(x) - r(y̅)) + (1 - Σ f(s))·o(t)·(r(y̅) - r(x)),

in expected clicks; below 0 where users would gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.repair.allowed import Allowed
from elute.repair.candidates import Candidates
from elute.repair.swapping.expected import MOST, Outlook
from elute.repair.swapping.traffic import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class FeasibleSwaps(NamedTuple):
    """Show `item` of `query`, known under factor `source`, under factor `target`: at most `most` times, at a `loss` of
    expected clicks each time (below 0: a gain); `strength`: the information it would give about the link then."""

    item: Ints
    source: Ints
    target: Ints
    query: Ints
    most: Ints
    loss: Floats
    strength: Floats

    @property
    def pairs(self) -> Ints:
        """The factors that each makes comparable."""
        return np.column_stack((self.source, self.target))

    def take(self, which: NDArray[np.integer] | Mask) -> FeasibleSwaps:
        """These swaps, in this order."""
        return FeasibleSwaps._make(column[which] for column in self)

    def to_candidates(self) -> Candidates:
        """What spending a budget looks at."""
        return Candidates(self.item, self.source, self.target, self.most, self.loss)

    def append(self, more: FeasibleSwaps) -> FeasibleSwaps:
        """These swaps and more."""
        return FeasibleSwaps._make(np.concatenate(pair) for pair in zip(self, more, strict=True))


NO_SWAPS_YET = FeasibleSwaps._make([np.empty(0, np.int64)] * 5 + [np.empty(0)] * 2)


def list_swaps(
    traffic: Traffic, expected: Outlook, kind: Ints, place: Ints, pages: float, allowed: Allowed, linking: bool
) -> FeasibleSwaps:
    """All of them, one item a place and linked part; `pages`: how many of the log's pages of a query may be changed, as
    a share (above 1 where the plan runs longer than the log did). `linking`: only to places of other parts; otherwise
    to any other place."""
    sources, targets, position, change = set_limits(traffic, expected, allowed)
    found = _list_swaps(
        traffic.offsets,
        traffic.item,
        traffic.factor,
        traffic.impressions,
        sources,
        targets,
        kind,
        place,
        position,
        change,
        expected.relevance,
        expected.typical,
        expected.propensity,
        expected.part,
        expected.known,
        expected.home,
        pages,
        linking,
    )
    return FeasibleSwaps._make(found)


def set_limits(traffic: Traffic, expected: Outlook, allowed: Allowed) -> tuple[Mask, Mask, Floats, float]:
    """Which rows may be sources, which factors targets; positions, and how far they may change."""
    sources = expected.relevance[traffic.item] > 0
    sources &= expected.propensity[traffic.factor] > 0
    if allowed.exclude_items is not None:
        sources &= ~allowed.exclude_items[traffic.item]
    if allowed.min_impressions > 0:
        sources &= traffic.impressions >= allowed.min_impressions
    targets = expected.propensity > 0
    if allowed.only_positions is not None:
        targets &= allowed.only_positions
    change = np.inf if allowed.max_position_change is None else float(allowed.max_position_change)
    position = np.zeros(len(targets)) if allowed.position is None else allowed.position
    return sources, targets, position, change


@jit
def _list_swaps(
    offsets: Ints,
    item: Ints,
    factor: Ints,
    shown: Ints,
    sources: Mask,
    targets: Mask,
    kind: Ints,
    spot_of: Ints,
    position: Floats,
    change: float,
    r: Floats,
    typical: Floats,
    o: Floats,
    part: Ints,
    known: Floats,
    home: Ints,
    pages: float,
    linking: bool,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats, Floats]:
    n_factors = kind.shape[0]
    traffic, worth, spot = np.zeros(n_factors), np.zeros(n_factors), np.zeros(int(spot_of.max()) + 1)
    place_of, slot_of = np.full(n_factors, -1), np.full(int(part.max()) + 1, -1)
    size = 1024
    codes, figures = np.empty((size, 5), np.int64), np.empty((size, 2))
    n = 0
    for q in range(offsets.shape[0] - 1):
        begin, end = offsets[q], offsets[q + 1]
        places, slots = 0, 0
        for row in range(begin, end):
            t = factor[row]
            if place_of[t] < 0:
                place_of[t] = places
                places += 1
            if slot_of[part[t]] < 0:
                slot_of[part[t]] = slots
                slots += 1
            traffic[t] += shown[row]
            spot[spot_of[t]] += shown[row]
            worth[t] += shown[row] * r[item[row]]
        if places > 1 and (slots > 1 or not linking):
            wide = slots if linking else 1
            best, best_item = np.zeros((places, wide)), np.full((places, wide), -1)
            best_source, place = np.full((places, wide), -1), np.empty(places, np.int64)
            for row in range(begin, end):
                place[place_of[factor[row]]] = factor[row]
            first = begin
            while first < end:
                x, last = item[first], first
                while last < end and item[last] == x:
                    last += 1
                for k in range(places):
                    t = place[k]
                    if not targets[t] or (linking and home[x] == part[t]):
                        continue
                    most = np.floor(pages * traffic[t])
                    chosen = choose_source(
                        first, last, factor, shown, sources, t, kind, position, change, o, part, home[x], linking
                    )
                    if chosen < 0 or most < 1.0:
                        continue
                    p = min(typical[x] * o[t], MOST)
                    gain = most * p / (1.0 - p)
                    strength = gain * known[x] / (gain + known[x])
                    slot = slot_of[home[x]] if linking else 0
                    if strength > best[k, slot]:
                        best[k, slot], best_item[k, slot], best_source[k, slot] = strength, x, chosen
                first = last
            for k in range(places):
                for slot in range(wide):
                    if best_item[k, slot] >= 0:
                        if n == size:
                            codes, figures = _double(codes, figures)
                            size *= 2
                        x, t = best_item[k, slot], place[k]
                        codes[n] = np.array([x, best_source[k, slot], t, q, int(np.floor(pages * traffic[t]))])
                        there = worth[t] / traffic[t]
                        loss = _lose(x, t, item, factor, shown, begin, end, kind, spot_of, spot, there, r, o)
                        figures[n] = np.array([loss, best[k, slot]])
                        n += 1
        for row in range(begin, end):
            t = factor[row]
            place_of[t], slot_of[part[t]], traffic[t], worth[t], spot[spot_of[t]] = -1, -1, 0.0, 0.0, 0.0
    out, numbers = codes[:n].copy(), figures[:n].copy()
    return out[:, 0], out[:, 1], out[:, 2], out[:, 3], out[:, 4], numbers[:, 0], numbers[:, 1]


@jit
def choose_source(
    first: int,
    last: int,
    factor: Ints,
    shown: Ints,
    sources: Mask,
    t: int,
    kind: Ints,
    position: Floats,
    change: float,
    o: Floats,
    part: Ints,
    home: int,
    linking: bool,
) -> int:
    """Of an item's rows `first` to `last`, the factor that it may leave for t and is seen under most; -1: none."""
    chosen, weight = -1, 0.0
    for row in range(first, last):
        s = factor[row]
        if (
            sources[row]
            and s != t
            and kind[s] == kind[t]
            and (not linking or part[s] == home)
            and abs(position[s] - position[t]) <= change
            and shown[row] * o[s] > weight
        ):
            chosen, weight = s, shown[row] * o[s]
    return chosen


@jit
def _double(codes: Ints, figures: Floats) -> tuple[Ints, Floats]:
    more, wider = np.empty((2 * len(codes), 5), np.int64), np.empty((2 * len(codes), 2))
    more[: len(codes)], wider[: len(codes)] = codes, figures
    return more, wider


@jit
def _lose(
    x: int,
    t: int,
    item: Ints,
    factor: Ints,
    shown: Ints,
    begin: int,
    end: int,
    kind: Ints,
    spot_of: Ints,
    spot: Floats,
    there: float,
    r: Floats,
    o: Floats,
) -> float:
    """Outlook clicks that users lose by one impression of x at t, where `there` is the relevance shown there."""
    most = 0.0
    for row in range(begin, end):
        if kind[factor[row]] == kind[t]:
            most = max(most, spot[spot_of[factor[row]]])
    absent, loss = 1.0, 0.0
    for row in range(begin, end):
        s = factor[row]
        if item[row] == x and kind[s] == kind[t]:
            share = shown[row] / most
            absent -= share
            loss += share * (o[s] - o[t]) * (r[x] - there)
    total: float = loss + max(absent, 0.0) * o[t] * (there - r[x])
    return total

"""Swaps of a log without queries: any item may stand under any factor of its kind.

There is one pool of pages then, and too many pairs to list. The cheapest ones that join parts, by Eq. 3, are found by
lower envelopes (`elute.repair.swap`), kind by kind. What makes propensities more certain is one of the items of which
most is known.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from elute.cells.canonical import hash_items
from elute.cells.counts import Cells, Counts
from elute.kernels.jit import jit
from elute.known.canonical import rank_items
from elute.repair.allowed import Allowed
from elute.repair.swap import find_minimum_swaps
from elute.repair.swapping.expected import MOST, Outlook, to_fitted_cells
from elute.repair.swapping.feasible import FeasibleSwaps, choose_source, set_limits
from elute.repair.swapping.traffic import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_POOL = 1000


def list_swaps_anywhere(
    counts: Counts, traffic: Traffic, expected: Outlook, kind: Ints, place: Ints, pages: float, allowed: Allowed
) -> FeasibleSwaps:
    """Swaps that hold a spanning tree of least cost, as far as there is one."""
    order = np.argsort(_rank(counts))
    cells = to_fitted_cells(counts, expected).take(order)
    if allowed.exclude_items is not None:
        allowed = replace(allowed, exclude_items=allowed.exclude_items[order])
    seen = np.bincount(traffic.factor, traffic.impressions, len(kind)).astype(np.float64)
    most = np.floor(pages * seen).astype(np.int64)
    rows: list[tuple[Ints, Ints, Ints]] = []
    for one in range(int(kind.max(initial=0)) + 1):
        inside = kind == one
        targets = inside & (most > 0)
        targets &= True if allowed.only_positions is None else allowed.only_positions
        found = find_minimum_swaps(cells, replace(allowed, only_positions=targets, only_sources=inside)).swaps
        rows.append((order[found.item], found.source, found.target))
    item, source, target = (np.concatenate(column) for column in zip(*rows, strict=True))
    return _describe(counts, expected, kind, place, seen, most, item, source, target)


def list_more_anywhere(
    counts: Counts, traffic: Traffic, expected: Outlook, kind: Ints, place: Ints, pages: float, allowed: Allowed
) -> FeasibleSwaps:
    """For every factor, the item that tells most of it, of those of which most is known."""
    seen = np.bincount(traffic.factor, traffic.impressions, len(kind)).astype(np.float64)
    most = np.floor(pages * seen).astype(np.int64)
    pool = np.lexsort((_rank(counts), -expected.known * (expected.relevance > 0)))[:_POOL]
    sources, targets, position, change = set_limits(traffic, expected, allowed)
    item, source = _choose(
        pool,
        counts.offsets,
        counts.factor.astype(np.int64),
        counts.impressions.astype(np.int64),
        sources,
        targets & (most > 0),
        kind,
        position,
        change,
        expected.typical,
        expected.propensity,
        expected.known,
        most,
    )
    target = np.flatnonzero(item >= 0)
    return _describe(counts, expected, kind, place, seen, most, item[target], source[target], target)


def _rank(counts: Counts) -> NDArray[np.int32]:
    """Of equally good items the first is taken: in an order that does not hang on where the log was counted."""
    return rank_items(hash_items(Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)))


@jit
def _choose(
    pool: Ints,
    offsets: Ints,
    factor: Ints,
    shown: Ints,
    sources: Mask,
    targets: Mask,
    kind: Ints,
    position: Floats,
    change: float,
    r: Floats,
    o: Floats,
    known: Floats,
    most: Ints,
) -> tuple[Ints, Ints]:
    """For every factor the item of the pool that tells most of it, and the factor that it is known from (-1: none)."""
    n = kind.shape[0]
    item, source, best = np.full(n, -1), np.full(n, -1), np.zeros(n)
    for x in pool:
        for t in range(n):
            p = min(r[x] * o[t], MOST)
            gain = most[t] * p / (1.0 - p)
            strength = gain * known[x] / (gain + known[x]) if gain > 0.0 else 0.0
            if targets[t] and strength > best[t]:
                s = choose_source(
                    offsets[x], offsets[x + 1], factor, shown, sources, t, kind, position, change, o, kind, 0, False
                )
                if s >= 0:
                    item[t], source[t], best[t] = x, s, strength
    return item, source


def _describe(
    counts: Counts,
    expected: Outlook,
    kind: Ints,
    place: Ints,
    seen: Floats,
    most: Ints,
    item: Ints,
    source: Ints,
    target: Ints,
) -> FeasibleSwaps:
    gain, known = most[target] * expected.odds(item, target), expected.known[item]
    return FeasibleSwaps(
        item,
        source,
        target,
        np.zeros(len(item), np.int64),
        most[target],
        _price_losses(counts, expected, kind, np.bincount(place, seen)[place].astype(np.float64), seen, item, target),
        gain * known / (gain + known),
    )


def _price_losses(
    counts: Counts, expected: Outlook, kind: Ints, having: Floats, seen: Floats, item: Ints, target: Ints
) -> Floats:
    """Expected clicks lost by one impression, as in `elute.repair.swapping.feasible`, with all pages as one query's;
    `having`: pages that have the place of each factor."""
    r, o, n = expected.relevance, expected.propensity, len(kind)
    pages = np.zeros(int(kind.max(initial=0)) + 1)
    np.maximum.at(pages, kind, having)
    every = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    there = np.bincount(counts.factor, counts.impressions * r[every], n) / np.maximum(seen, 1.0)
    out = np.empty(len(item))
    for at, (x, t) in enumerate(zip(item.tolist(), target.tolist(), strict=True)):
        own = slice(counts.offsets[x], counts.offsets[x + 1])
        s = counts.factor[own]
        same = kind[s] == kind[t]
        share = counts.impressions[own][same] / pages[kind[t]]
        moved = float((share * (o[s[same]] - o[t])).sum()) * (r[x] - there[t])
        out[at] = moved + max(1.0 - float(share.sum()), 0.0) * o[t] * (there[t] - r[x])
    return out

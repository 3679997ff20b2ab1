"""Swaps of a log without queries: any item may stand under any factor of its kind.

There is one pool of pages then, and too many pairs to list. The cheapest ones that join parts, by Eq. 3, are found by
lower envelopes (`elute.repair.swap`), kind by kind.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.repair.allowed import Allowed
from elute.repair.swap import find_minimum_swaps
from elute.repair.swapping.expected import Expected, to_fitted_cells
from elute.repair.swapping.feasible import Candidates
from elute.repair.swapping.traffic import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def list_swaps_anywhere(
    counts: Counts, traffic: Traffic, expected: Expected, kind: Ints, pages: float, allowed: Allowed
) -> Candidates:
    """Swaps that hold a spanning tree of least cost, as far as there is one."""
    cells = to_fitted_cells(counts, expected)
    seen = np.bincount(traffic.factor, traffic.impressions, len(kind)).astype(np.float64)
    most = np.floor(pages * seen).astype(np.int64)
    rows: list[tuple[Ints, Ints, Ints]] = []
    for one in range(int(kind.max(initial=0)) + 1):
        inside = kind == one
        targets = inside & (most > 0)
        targets &= True if allowed.only_positions is None else allowed.only_positions
        found = find_minimum_swaps(cells, replace(allowed, only_positions=targets, only_sources=inside)).swaps
        rows.append((found.item, found.source, found.target))
    item, source, target = (np.concatenate(column) for column in zip(*rows, strict=True))
    p = expected.probability(item, target)
    gain, known = most[target] * p / (1 - p), expected.known[item]
    return Candidates(
        item,
        source,
        target,
        np.zeros(len(item), np.int64),
        most[target],
        _price_losses(counts, expected, kind, seen, item, target),
        gain * known / (gain + known),
    )


def _price_losses(counts: Counts, expected: Expected, kind: Ints, seen: Floats, item: Ints, target: Ints) -> Floats:
    """Expected clicks lost by one impression, as in `elute.repair.swapping.feasible`, with all pages as one query's."""
    r, o, n = expected.relevance, expected.propensity, len(kind)
    pages = np.zeros(int(kind.max(initial=0)) + 1)
    np.maximum.at(pages, kind, seen)
    every = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    there = np.bincount(counts.factor, counts.impressions * r[every], n) / np.maximum(seen, 1.0)
    out = np.empty(len(item))
    for at, (x, t) in enumerate(zip(item.tolist(), target.tolist(), strict=True)):
        own = slice(counts.offsets[x], counts.offsets[x + 1])
        s = counts.factor[own]
        same = kind[s] == kind[t]
        share = counts.impressions[own][same] / pages[kind[t]]
        moved = float((share * (o[s[same]] - o[t])).sum()) * (r[x] - there[t])
        out[at] = max(0.0, moved + max(1.0 - float(share.sum()), 0.0) * o[t] * (there[t] - r[x]))
    return out

"""How many more impressions of a swap bring its link to the variance wanted.

Through the planned item alone the variance of a link is (1/p_s - 1)/n_s + (1/p_t - 1)/n_t (Proposition 1); whatever
else ties its two factors conducts beside it, and conductances 1/v add up. So an item must conduct what it does now and
what its link lacks, 1/goal - 1/v, or its part of that where several items are planned for one link. Click probabilities
are those seen, with one click as the plan expects it: before the first click, the plan's word is all there is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elute.estimate.solve.problem import Floats
from elute.repair.looks.cells import SeenCells
from elute.repair.swap import impressions_needed


class Lacking(NamedTuple):
    """Impressions still to be shown, of the new pair and of the item where it is known from."""

    target: int
    source: int


def find_left(
    source: SeenCells, target: SeenCells, expected: Floats, variance: Floats, goal: Floats, shared: Floats
) -> list[Lacking]:
    """By swap: the cells it links in all of the log, the click probability that the plan expects of the new pair, its
    link's variance now and the one wanted, and how many swaps that link has."""
    p_source = (source.clicks + 0.5) / (source.impressions + 1.0)
    p_target = np.minimum((target.clicks + 1.0) / (target.impressions + 1.0 / np.maximum(expected, 1e-9)), 1.0)
    own = _divide(1 / p_source - 1, source.impressions) + _divide(1 / p_target - 1, target.impressions)
    found = []
    for at in range(len(expected)):
        if variance[at] <= goal[at]:
            found.append(Lacking(0, 0))
            continue
        now = 1 / own[at] if np.isfinite(variance[at]) and own[at] > 0 else 0.0
        wanted = 1 / (now + (1 / goal[at] - 1 / variance[at]) / shared[at])
        own_cells = p_source[at : at + 1], p_target[at : at + 1], source.impressions[at : at + 1]
        needed = impressions_needed(np.ones(1), *own_cells, float(np.sqrt(wanted)))
        more = max(int(needed.target[0]) - int(target.impressions[at]), 0)
        further = int(needed.source[0])
        found.append(Lacking(max(more, 1 if further == 0 else 0), further))
    return found


def _divide(odds: Floats, impressions: np.ndarray) -> Floats:
    return np.where(impressions > 0, odds / np.maximum(impressions, 1), np.inf)

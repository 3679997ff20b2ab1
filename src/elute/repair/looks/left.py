"""How many more impressions of a swap bring its link to the variance wanted.

Through the planned item alone the variance of a link is q_s/n_s + q_t/n_t, with q = 1/p - 1 (Proposition 1); whatever
else ties its two factors conducts beside it, and conductances 1/v add up. So an item must conduct what it does now and
what its link lacks, 1/goal - 1/v, or its part of that where several items are planned for one link. The fewest
impressions for a variance g are n_s = √q_s·(√q_s + √q_t)/g and n_t = √q_t·(√q_s + √q_t)/g; where the log has more of
one already, the other need only make up for the rest. Click probabilities are those seen, with one click as
expected: before the first click, the plan's word (and the old log's) is all there is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elute.estimate.solve.problem import Floats
from elute.repair.looks.cells import SeenCells

_NONE = 1e-9

_WILLING = 2.0
"""How many times the fewest impressions may be shown of the new pair, so that none are asked of the other."""


class Lacking(NamedTuple):
    """Impressions still to be shown, by swap: of the new pair, and of the item where it is known from."""

    target: Floats
    source: Floats


class SwapEnds(NamedTuple):
    """By swap: the cells of its item where it is known from and where it is shown anew, since the plan was made, and
    the click probabilities expected of them."""

    source: SeenCells
    target: SeenCells
    expected_source: Floats
    expected_target: Floats


def find_left(ends: SwapEnds, variance: Floats, goal: float, shared: Floats) -> Lacking:
    """By swap, from its link's variance now and the one wanted, and how many swaps that link has."""
    n_s, n_t = (cells.impressions.astype(np.float64) for cells in (ends.source, ends.target))
    q_s, q_t = _find_odds(ends.source, ends.expected_source), _find_odds(ends.target, ends.expected_target)
    shown = (n_s > 0) & (n_t > 0) & np.isfinite(variance)
    now = np.where(shown, 1 / (q_s / np.maximum(n_s, 1) + q_t / np.maximum(n_t, 1)), 0.0)
    open_links = variance > goal
    lacks = np.where(open_links, 1 / goal - 1 / variance, 1 / goal)
    wanted = 1 / (now + lacks / shared)
    need_s, need_t = find_fewest(q_s, q_t, n_s, n_t, wanted)
    more_t, more_s = (np.where(open_links, np.ceil(need - n), 0.0) for need, n in ((need_t, n_t), (need_s, n_s)))
    return Lacking(np.where(open_links & (more_s == 0), np.maximum(more_t, 1.0), more_t), more_s)


def _find_odds(seen: SeenCells, expected: Floats) -> Floats:
    """1/p - 1, from the clicks and one as expected."""
    p = np.minimum((seen.clicks + 1.0) / (seen.impressions + 1.0 / np.maximum(expected, _NONE)), 1.0)
    return np.maximum(1 / p - 1, _NONE)


def find_fewest(q_s: Floats, q_t: Floats, n_s: Floats, n_t: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """Impressions at both ends with q_s/n + q_t/n at most `wanted`, no fewer than there are: of the new pair alone
    where that takes at most twice as many as would do, since these can be shown at will; else the fewest."""
    both = (np.sqrt(q_s) + np.sqrt(q_t)) / wanted
    best_s, best_t = np.sqrt(q_s) * both, np.sqrt(q_t) * both
    alone_s = _make_up(q_s, wanted - q_t / np.maximum(n_t, _NONE))
    alone_t = _make_up(q_t, wanted - q_s / np.maximum(n_s, _NONE))
    need_s = np.maximum(np.where(n_s > best_s, n_s, np.where(n_t > best_t, alone_s, best_s)), n_s)
    need_t = np.maximum(np.where(n_t > best_t, n_t, np.where(n_s > best_s, alone_t, best_t)), n_t)
    cheap = alone_t - n_t <= _WILLING * (need_s - n_s + need_t - n_t)
    return np.where(cheap, n_s, need_s), np.where(cheap, np.maximum(alone_t, n_t), need_t)


def _make_up(q: Floats, rest: Floats) -> Floats:
    """Impressions with q/n = `rest`; infinitely many where nothing is left."""
    return np.where(rest > 0, q / np.where(rest > 0, rest, 1.0), np.inf)

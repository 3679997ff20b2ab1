"""Dividing a round's impressions among many candidates at once.

Candidate i, of odds q_i, lowers the objective by δ·A_i/(1 + δ·R_i), δ the information that it and the better ones of its
target bring: an impression more is worth q_i·A_i/(1 + δ·R_i)². Each target takes from its best candidates until an
impression is worth less than a price; the price is the lowest at which the impressions suffice. That the candidates of
different targets work on the same errors is left to the next round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_HALVINGS = 40


def share_out(target: Ints, gain: Floats, resistance: Floats, odds: Floats, left: Ints, budget: int) -> Ints:
    """Impressions by candidate, `budget` at most in all; `gain`: A, `left`: the most that each can take."""
    worth = gain * odds
    order = np.lexsort((-worth, target))
    order = order[(worth[order] > 0) & (left[order] > 0)]
    out = np.zeros(len(target), np.int64)
    if not len(order):
        return out
    starts = np.flatnonzero(np.diff(target[order], prepend=-1, append=-1))
    ranked = starts, worth[order], resistance[order], odds[order], left[order]
    high = float(worth[order].max())
    low = high * 1e-18
    for _ in range(_HALVINGS):
        price = np.sqrt(low * high)
        if _divide(*ranked, price).sum() > budget:
            low = price
        else:
            high = price
    out[order] = _divide(*ranked, high)
    return out


def top_up(worth: Floats, left: Ints, budget: int) -> Ints:
    """All of the budget, or all that candidates of any worth can take: the most worthy first."""
    order = np.argsort(-worth, kind="stable")
    order = order[worth[order] > 0]
    out = np.zeros(len(worth), np.int64)
    out[order] = np.diff(np.minimum(np.cumsum(left[order]), budget), prepend=0)
    return out


@jit
def _divide(starts: Ints, worth: Floats, resistance: Floats, odds: Floats, left: Ints, price: float) -> Ints:
    """What each takes at a price; the candidates of a target together, the best of them first."""
    out = np.zeros(worth.shape[0], np.int64)
    for which in range(starts.shape[0] - 1):
        reached = 0.0
        for at in range(starts[which], starts[which + 1]):
            if worth[at] <= price:
                break
            wanted = (np.sqrt(worth[at] / price) - 1.0) / resistance[at] - reached
            amount = min(wanted / odds[at] + 0.5, float(left[at]))
            if amount >= 1.0:
                out[at] = int(amount)
                reached += out[at] * odds[at]
    return out

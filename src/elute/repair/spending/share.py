"""Dividing a round's impressions among many candidates at once.

A candidate of odds o = p/(1-p) lowers variances, as the objective weighs them now, by δ·A/(1 + δ·R), δ the information
that it and the better ones of its target bring. Mostly it is the target's own variance that falls, to 1/(1 + δ·R) of
itself, and with it its weight, which is its power q/2 - 1 in a norm of power q. So an impression more is worth about
o·A/(1 + δ·R)^(1 + q/2). Each target takes from its best candidates until an impression is worth less than a price; the
price is the lowest at which the impressions suffice. That candidates of different targets work on the same errors is
left to the next round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_HALVINGS = 40
_LOWEST = 100.0
"""By how much the logarithm of a price may be below that of what is worth least."""


class Offers(NamedTuple):
    """By candidate: its target, A, R, the odds of a click, and the impressions that it can still take."""

    target: Ints
    gain: Floats
    resistance: Floats
    odds: Floats
    left: Ints

    @property
    def worth(self) -> Floats:
        """Of the first impression."""
        return self.gain * self.odds

    def take(self, which: Ints) -> Offers:
        """These, in this order."""
        return Offers(self.target[which], self.gain[which], self.resistance[which], self.odds[which], self.left[which])


def share_out(offers: Offers, budget: int, power: float) -> Ints:
    """Impressions by candidate, `budget` at most in all; `power`: q."""
    worth, out = offers.worth, np.zeros(len(offers.target), np.int64)
    order = np.lexsort((-worth, offers.target))
    order = order[(worth[order] > 0) & (offers.left[order] > 0)]
    if not len(order):
        return out
    ranked, logs, root = offers.take(order), np.log(worth[order]), 1 / (1 + power / 2)
    starts = np.flatnonzero(np.diff(ranked.target, prepend=-1, append=-1))
    low, high = float(logs.min()) - _LOWEST, float(logs.max())
    for _ in range(_HALVINGS):
        price = (low + high) / 2
        if _divide(starts, logs, ranked, root, price).sum() > budget:
            low = price
        else:
            high = price
    out[order] = _divide(starts, logs, ranked, root, high)
    return out


def top_up(worth: Floats, left: Ints, budget: int) -> Ints:
    """All of the budget, or all that candidates of any worth can take: the most worthy first."""
    order = np.argsort(-worth, kind="stable")
    order = order[worth[order] > 0]
    out = np.zeros(len(worth), np.int64)
    out[order] = np.diff(np.minimum(np.cumsum(left[order]), budget), prepend=0)
    return out


@jit
def _divide(starts: Ints, worth: Floats, ranked: Offers, root: float, price: float) -> Ints:
    """What each takes at a price; the candidates of a target together, the best of them first. Worth and price are
    logarithms."""
    out = np.zeros(worth.shape[0], np.int64)
    for which in range(starts.shape[0] - 1):
        reached = 0.0
        for at in range(starts[which], starts[which + 1]):
            if worth[at] <= price:
                break
            wanted = np.expm1((worth[at] - price) * root) / ranked.resistance[at] - reached
            if wanted > 0.0:
                out[at] = int(min(np.ceil(wanted / ranked.odds[at]), float(ranked.left[at])))
                reached += out[at] * ranked.odds[at]
    return out

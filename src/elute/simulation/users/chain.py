"""Users who read a page result by result and, after each, go on or stop: cascade, dependent-click and DBN.

At every result read the user clicks with its attraction; then goes on with one probability after a click and with
another after none. A chain is these three: `attraction` and `onward` (going on after a click) by (page, place),
`skip` (going on after no click) for all. The recursions run over places, each a vector over pages.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, Floats, User, as_booleans, attraction, safe_log
from elute.simulation.users.kernels import read_down

Flags = NDArray[np.bool_]


class Habits(NamedTuple):
    """How a user goes on. After a click: with `after_click[k]·(1 - share·satisfaction)` at the k-th result read."""

    skip: float
    after_click: Floats
    satisfaction: Floats
    """By (page, place)."""
    share: float

    def onward(self, mask: Flags) -> Floats:
        """P(going on after a click) by (page, place)."""
        return np.asarray(self.after_click * (1.0 - self.share * np.where(mask, self.satisfaction, 0.0)))


class ChainUser(User):
    """A user who reads from the top."""

    @abstractmethod
    def habits(self, shown: ShownPages) -> Habits:
        """How this user goes on, on these pages."""

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        return read_down(rng, shown.relevance, shown.length, *self.habits(shown))

    def probabilities(self, shown: ShownPages) -> Floats:
        habits = self.habits(shown)
        return click_marginals(attraction(shown), habits.skip, habits.onward(shown.mask))

    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        habits, mask = self.habits(shown), shown.mask
        return log_patterns(attraction(shown), habits.skip, habits.onward(mask), mask, as_booleans(shown, clicks))


def click_marginals(attraction: Floats, skip: float, onward: Floats) -> Floats:
    """P(click) by place: attraction times the probability of having read that far."""
    p = np.zeros_like(attraction)
    read = np.ones(len(attraction))
    for k in range(attraction.shape[1]):
        a = attraction[:, k]
        p[:, k] = read * a
        read = read * (a * onward[:, k] + (1.0 - a) * skip)
    return p


def log_patterns(attraction: Floats, skip: float, onward: Floats, shown: Flags, clicked: Flags) -> Floats:
    """log P(exactly these clicks) by page.

    Backwards: L_k is the log-probability of the clicks from place k on, given that k is read. Having stopped after
    k explains the rest only if nothing is clicked there. A click on the padding is impossible.
    """
    total = np.zeros(len(attraction))
    none_below = np.ones(len(attraction), np.bool_)
    for k in range(attraction.shape[1])[::-1]:
        click, a = clicked[:, k], attraction[:, k]
        here = safe_log(np.where(click, a, 1.0 - a))
        on = np.where(click, onward[:, k], skip)
        rest = np.logaddexp(safe_log(np.where(none_below, 1.0 - on, 0.0)), safe_log(on) + total)
        total = np.where(shown[:, k], here + rest, np.where(click, -np.inf, total))
        none_below &= ~click
    return total

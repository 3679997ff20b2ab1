"""A mixture of two dynamic Bayesian users: most read from the top, the others from the bottom."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.options.kinds import PROBABILITY
from elute.options.takes import declares
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import (
    Clicks,
    Floats,
    User,
    as_booleans,
    attraction,
    safe_log,
)
from elute.simulation.users.chain import click_marginals, log_patterns
from elute.simulation.users.dbn import dbn_habits
from elute.simulation.users.kernels import read_either_way

T = TypeVar("T", bound=np.generic)


@declares(continuation=PROBABILITY, top_down=PROBABILITY)
class MixtureDBN(User):
    """Each page is read top-down with probability `top_down`, else bottom-up, by a DBN (CMIP paper, Section 5.1.4).

    Satisfaction as in `DynamicBayesian`; `continuation` is γ: 0.7 in the paper's public code, not in its text.
    """

    def __init__(self, continuation: float = 0.7, top_down: float = 0.7) -> None:
        self.continuation = continuation
        self.top_down = top_down

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        habits = dbn_habits(shown, self.continuation)
        return read_either_way(
            rng, shown.relevance, shown.length, self.top_down, habits.skip, habits.satisfaction, habits.share
        )

    def probabilities(self, shown: ShownPages) -> Floats:
        a, onward = self._attraction_and_onward(shown)
        down = click_marginals(a, self.continuation, onward)
        up = click_marginals(_reverse_pages(a, shown), self.continuation, _reverse_pages(onward, shown))
        return self.top_down * down + (1.0 - self.top_down) * _reverse_pages(up, shown)

    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        a, onward = self._attraction_and_onward(shown)
        given, mask = as_booleans(shown, clicks), shown.mask
        down = log_patterns(a, self.continuation, onward, mask, given)
        a, onward, given = _reverse_pages(a, shown), _reverse_pages(onward, shown), _reverse_pages(given, shown)
        up = log_patterns(a, self.continuation, onward, mask, given)
        share = safe_log(np.array([self.top_down, 1.0 - self.top_down]))
        return np.asarray(np.logaddexp(share[0] + down, share[1] + up))

    def _attraction_and_onward(self, shown: ShownPages) -> tuple[Floats, Floats]:
        """Attraction, and going on after a click, by (page, place)."""
        return attraction(shown), dbn_habits(shown, self.continuation).onward(shown.mask)


def _reverse_pages(values: NDArray[T], shown: ShownPages) -> NDArray[T]:
    """Every page's results in reverse; the padding stays where and as it is."""
    place = np.arange(shown.width)
    return np.take_along_axis(values, np.where(shown.mask, shown.length[:, None] - 1 - place, place), axis=1)

"""The dynamic Bayesian user: attracted to click, then satisfied or not; goes on unless satisfied or tired."""

from __future__ import annotations

import numpy as np

from elute.options.kinds import PROBABILITY
from elute.options.takes import declares
from elute.simulation.shown import ShownPages
from elute.simulation.users.chain import ChainUser, Habits

_UNSURE = 0.5
"""Satisfaction as a share of relevance, where it is not given (Section 5.1.4 of the CMIP paper)."""


@declares(continuation=PROBABILITY)
class DynamicBayesian(ChainUser):
    """Attraction A = R, satisfaction S, continuation γ (Section 5.1.4 of the CMIP paper; Chapelle and Zhang 2009).

    Goes on with γ after no click, with γ(1 - S) after a click. S is the pages' satisfaction, or R/2 where they have
    none. The paper's text has no γ; 0.8 is what its public code uses.
    """

    def __init__(self, continuation: float = 0.8) -> None:
        self.continuation = continuation

    def habits(self, shown: ShownPages) -> Habits:
        return dbn_habits(shown, self.continuation)


def dbn_habits(shown: ShownPages, continuation: float) -> Habits:
    """The habits of a DBN with this γ."""
    by_rank = np.full(shown.width, continuation)
    if shown.satisfaction is None:
        return Habits(continuation, by_rank, shown.relevance, _UNSURE)
    return Habits(continuation, by_rank, shown.satisfaction, 1.0)

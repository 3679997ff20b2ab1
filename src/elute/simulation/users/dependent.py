"""The dependent-click user: a cascade that may go on after a click, more or less readily by rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from elute.simulation.shown import ShownPages
from elute.simulation.users.base import check_probabilities, require_ranks
from elute.simulation.users.chain import ChainUser, Habits


class DependentClick(ChainUser):
    """Goes on after a click at rank k with λ_k, and always after none (Guo et al. 2009).

    `continuation`: λ by rank, or one number for all ranks. The default of a half is a choice made here.
    """

    def __init__(self, continuation: ArrayLike = 0.5) -> None:
        self.continuation = check_probabilities(continuation, "continuation")
        self._everywhere = np.ndim(continuation) == 0

    def habits(self, shown: ShownPages) -> Habits:
        if self._everywhere:
            return Habits(1.0, np.full(shown.width, self.continuation[0]), shown.relevance, 0.0)
        require_ranks(len(self.continuation), shown, "continuations")
        after_click = np.zeros(shown.width)
        known = min(shown.width, len(self.continuation))
        after_click[:known] = self.continuation[:known]
        return Habits(1.0, after_click, shown.relevance, 0.0)

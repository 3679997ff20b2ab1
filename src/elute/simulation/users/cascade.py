"""The cascade user: reads from the top and stops at the first click."""

from __future__ import annotations

import numpy as np

from elute.simulation.shown import Shown
from elute.simulation.users.chain import Chain, Habits


class Cascade(Chain):
    """P(click) = R·Π over the places above of (1 - R) (Eq. 30 of the limits paper)."""

    def habits(self, shown: Shown) -> Habits:
        return Habits(1.0, np.zeros(shown.width), shown.relevance, 0.0)

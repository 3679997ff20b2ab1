"""The cascade user: reads from the top and stops at the first click."""

from __future__ import annotations

import numpy as np

from elute.simulation.shown import ShownPages
from elute.simulation.users.chain import ChainUser, Habits


class CascadeUser(ChainUser):
    """P(click) = R·Π over the places above of (1 - R) (Eq. 30 of the limits paper)."""

    def habits(self, shown: ShownPages) -> Habits:
        return Habits(1.0, np.zeros(shown.width), shown.relevance, 0.0)

"""Rankings by scores that are given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.ranking.data import RankingData
from elute.simulation.policies.base import Floats, Policy, check_scores


class Scored(Policy):
    """Any scores, one for every document of the data it is used on. Temperature 0, the default, sorts by them."""

    def __init__(self, scores: NDArray[np.floating], *, temperature: float = 0.0, seed: int = 0) -> None:
        super().__init__(temperature=temperature, seed=seed)
        self.given = scores

    def scores(self, data: RankingData) -> Floats:
        return check_scores(self.given, data)

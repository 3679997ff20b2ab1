"""The grades, seen through noise: a logging policy close to the best (CMIP paper, Section 5.1.3)."""

from __future__ import annotations

import numpy as np

from elute.options.kinds import Number
from elute.options.takes import declares
from elute.ranking.data import RankingData
from elute.simulation.policies.base import Floats, Policy


@declares(sd=Number(0, 1e9))
class NoisyOracle(Policy):
    """Score = grade + `sd`·N(0, 1), the noise drawn once for each document; `temperature` acts on top of it.

    `sd` is a standard deviation. The paper's text has noise of *variance* 0.5 (`sd=0.5**0.5`), the code behind its
    tables a standard deviation of 0.5, the default here.
    """

    def __init__(self, *, sd: float = 0.5, temperature: float = 0.1, seed: int = 0) -> None:
        super().__init__(temperature=temperature, seed=seed)
        self.sd = sd

    def scores(self, data: RankingData) -> Floats:
        return data.grades + self.sd * np.random.default_rng(self.seed).standard_normal(data.n_documents)

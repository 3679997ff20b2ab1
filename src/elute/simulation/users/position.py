"""The position-based user: clicks what is examined and relevant, and examines by rank alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from elute.options.kinds import Number
from elute.options.takes import declares
from elute.simulation.grades import PROPENSITIES
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, Floats, check_probabilities, require_ranks
from elute.simulation.users.independent import IndependentUser, affine_probabilities, draw_affine_clicks


@declares(eta=Number(0, 1e6))
class PositionBased(IndependentUser):
    """P(click) = o_k^η·R (Eq. 1 of the identifiability paper; η as in Section 5.1 of the UPE paper).

    `propensities`: o by rank, at least as many as the longest page has results. `eta`: 0 is no bias, above 1 more
    than `propensities` say.
    """

    def __init__(self, propensities: ArrayLike = PROPENSITIES, eta: float = 1.0) -> None:
        self.eta = eta
        self._propensities = check_probabilities(propensities, "propensities") ** eta

    @property
    def propensities(self) -> Floats:
        """o_k^η by rank."""
        return self._propensities

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        require_ranks(len(self.propensities), shown, "propensities")
        o = self.propensities
        return draw_affine_clicks(rng, shown.relevance, shown.length, o, np.zeros_like(o))

    def probabilities(self, shown: ShownPages) -> Floats:
        require_ranks(len(self.propensities), shown, "propensities")
        return affine_probabilities(shown, self.propensities, np.zeros_like(self.propensities))

"""The choosing user: looks at the whole page and clicks one result, in proportion to relevance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, Floats, User, as_booleans, attraction, safe_log
from elute.simulation.users.kernels import choose_one


class PlackettLuceChoice(User):
    """P(click) = R over the sum of R on the page (Eq. 29 of the limits paper). No position plays a part.

    The probabilities of a page sum to 1, so a page has exactly one click; only where nothing is relevant at all
    (or nothing is shown), where Eq. 29 is 0/0, has it none.
    """

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        return choose_one(rng, shown.relevance, shown.length)

    def probabilities(self, shown: ShownPages) -> Floats:
        r = attraction(shown)
        total = r.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(r, total, out=np.zeros_like(r), where=total > 0.0))

    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        p, given = self.probabilities(shown), as_booleans(shown, clicks)
        amount = given.sum(axis=1)
        none = np.where(p.any(axis=1), 0.0, 1.0)
        return safe_log(np.select([amount == 0, amount == 1], [none, (p * given).sum(axis=1)], 0.0))

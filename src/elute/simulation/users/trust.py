"""The trusting user: takes some of what ranks high for relevant, so that clicks are affine in relevance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elute.errors import EluteError
from elute.simulation.grades import PROPENSITIES
from elute.simulation.shown import Shown
from elute.simulation.users.base import Clicks, Floats, reach, settle
from elute.simulation.users.independent import Independent, affine_clicks, affine_probabilities


class Affine(NamedTuple):
    """α and β by rank."""

    alpha: Floats
    beta: Floats


def trust_bias(
    propensities: ArrayLike = PROPENSITIES, plus: ArrayLike | None = None, minus: ArrayLike | None = None
) -> Affine:
    """α_k = θ_k(ε⁺_k - ε⁻_k) and β_k = θ_k·ε⁻_k: trust bias (Agarwal et al. 2019) as an affine model.

    `propensities`: θ_k, examination. `plus` (ε⁺_k) and `minus` (ε⁻_k): P(click) on an examined result that is, and
    that is not, relevant. Defaults: ε⁺ = 1, so that no relevant result is doubted, and ε⁻_k = 0.65/k, so that trust
    fades down the page. These two are a choice made here, of the size found in practice, not a published table.
    """
    theta = settle(propensities, "propensities")
    ranks = np.arange(1, len(theta) + 1)
    right = settle(np.ones(len(theta)) if plus is None else plus, "P(click | examined, relevant)")
    wrong = settle(0.65 / ranks if minus is None else minus, "P(click | examined, not relevant)")
    if not len(theta) == len(right) == len(wrong):
        raise EluteError(
            f"{len(theta)} propensities, {len(right)} values of plus and {len(wrong)} of minus; give as many of each"
        )
    return Affine(theta * (right - wrong), theta * wrong)


class Trust(Independent):
    """P(click) = α_k·R + β_k (Eq. 5 of the limits paper)."""

    def __init__(self, alpha: ArrayLike, beta: ArrayLike) -> None:
        self.alpha, self.beta = settle(alpha, "alpha"), settle(beta, "beta")
        if self.alpha.shape != self.beta.shape:
            raise EluteError(f"{len(self.alpha)} values of alpha and {len(self.beta)} of beta; give as many of each")
        if (self.alpha + self.beta).max() > 1.0 + 1e-12:
            rank = int((self.alpha + self.beta).argmax()) + 1
            raise EluteError(
                f"alpha + beta is above 1 at rank {rank}; it is P(click) at relevance 1: lower one of them"
            )

    def clicks(self, shown: Shown, rng: np.random.Generator) -> Clicks:
        reach(len(self.alpha), shown, "alpha and beta")
        return affine_clicks(rng, shown.relevance, shown.length, self.alpha, self.beta)

    def probabilities(self, shown: Shown) -> Floats:
        reach(len(self.alpha), shown, "alpha and beta")
        return affine_probabilities(shown, self.alpha, self.beta)

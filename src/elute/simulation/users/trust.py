"""The trusting user: takes some of what ranks high for relevant, so that clicks are affine in relevance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elute.errors import EluteError
from elute.simulation.grades import PROPENSITIES
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, Floats, check_probabilities, require_ranks
from elute.simulation.users.independent import IndependentUser, affine_probabilities, draw_affine_clicks


class AffineBias(NamedTuple):
    """α and β by rank."""

    alpha: Floats
    beta: Floats


def trust_bias(
    propensities: ArrayLike = PROPENSITIES, plus: ArrayLike | None = None, minus: ArrayLike | None = None
) -> AffineBias:
    """α_k = θ_k(ε⁺_k - ε⁻_k) and β_k = θ_k·ε⁻_k: trust bias (Agarwal et al. 2019) as an affine model.

    `propensities`: θ_k, examination. `plus` (ε⁺_k) and `minus` (ε⁻_k): P(click) on an examined result that is, and
    that is not, relevant. Defaults: ε⁺ = 1, so that no relevant result is doubted, and ε⁻_k = 0.65/k, so that trust
    fades down the page. These two are a choice made here, of the size found in practice, not a published table.
    """
    theta = check_probabilities(propensities, "propensities")
    ranks = np.arange(1, len(theta) + 1)
    right = check_probabilities(np.ones(len(theta)) if plus is None else plus, "P(click | examined, relevant)")
    wrong = check_probabilities(0.65 / ranks if minus is None else minus, "P(click | examined, not relevant)")
    if not len(theta) == len(right) == len(wrong):
        raise EluteError(
            f"{len(theta)} propensities, {len(right)} values of plus and {len(wrong)} of minus; give as many of each"
        )
    return AffineBias(theta * (right - wrong), theta * wrong)


class Trust(IndependentUser):
    """P(click) = α_k·R + β_k (Eq. 5 of the limits paper)."""

    def __init__(self, alpha: ArrayLike, beta: ArrayLike) -> None:
        self.alpha, self.beta = check_probabilities(alpha, "alpha"), check_probabilities(beta, "beta")
        if self.alpha.shape != self.beta.shape:
            raise EluteError(f"{len(self.alpha)} values of alpha and {len(self.beta)} of beta; give as many of each")
        if (self.alpha + self.beta).max() > 1.0 + 1e-12:
            rank = int((self.alpha + self.beta).argmax()) + 1
            raise EluteError(
                f"alpha + beta is above 1 at rank {rank}; it is P(click) at relevance 1: lower one of them"
            )

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        require_ranks(len(self.alpha), shown, "alpha and beta")
        return draw_affine_clicks(rng, shown.relevance, shown.length, self.alpha, self.beta)

    def probabilities(self, shown: ShownPages) -> Floats:
        require_ranks(len(self.alpha), shown, "alpha and beta")
        return affine_probabilities(shown, self.alpha, self.beta)

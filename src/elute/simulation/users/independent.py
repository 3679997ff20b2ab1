"""Users whose clicks on the places of a page are independent of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.kernels.jit import jit
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, Floats, User, as_booleans, safe_log


class IndependentUser(User):
    """A pattern's probability is the product over places."""

    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        p = self.probabilities(shown)
        happened = np.where(as_booleans(shown, clicks), p, 1.0 - p)
        return np.asarray(safe_log(happened).sum(axis=1))


@jit
def draw_affine_clicks(
    rng: np.random.Generator, relevance: Floats, length: NDArray[np.int64], alpha: Floats, beta: Floats
) -> Clicks:
    """Clicks with probability α_k·R + β_k at rank k: one uniform a place, drawn and used in one pass."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    for page in range(relevance.shape[0]):
        for k in range(length[page]):
            out[page, k] = rng.random() < alpha[k] * relevance[page, k] + beta[k]
    return out


def affine_probabilities(shown: ShownPages, alpha: Floats, beta: Floats) -> Floats:
    """α_k·R + β_k where a result is shown; at most 1, however α + β rounds."""
    page, place = np.nonzero(shown.mask)
    p = np.zeros(shown.relevance.shape)
    p[page, place] = np.minimum(alpha[place] * shown.relevance[page, place] + beta[place], 1.0)
    return p

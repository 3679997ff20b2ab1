"""The contextual position-based user: how steeply examination falls with rank depends on a result's context."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit
from elute.simulation.grades import PROPENSITIES
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, Floats, check_probabilities, require_ranks, to_floats
from elute.simulation.users.independent import IndependentUser

_DIMENSIONS = 10
_SPREAD = 0.35


class Contexts(NamedTuple):
    """`vectors` X_t by context, and the `weights` w that turn them into bias."""

    vectors: Floats
    weights: Floats


def draw_contexts(contexts: int, rng: np.random.Generator) -> Contexts:
    """X_t ~ N(0, 0.35) in 10 dimensions and w uniform in [-1, 1] (Appendix C.2 of the identifiability paper).

    The text does not say what 0.35 is; its public code takes the standard deviation, and so does this.
    """
    if contexts < 1:
        raise EluteError(f"{contexts} contexts asked for; there must be at least 1")
    weights = rng.uniform(-1.0, 1.0, _DIMENSIONS)
    return Contexts(rng.normal(0.0, _SPREAD, (contexts, _DIMENSIONS)), weights)


class ContextualPositionBased(IndependentUser):
    """P(click) = o(t, p)·R with o(t, p) = o(p)^max(w·X_t + 1, 0) (Appendix C.2 of the identifiability paper).

    `vectors` and `weights`: see `draw_contexts`. `propensities`: o(p) by rank. Pages must carry the context of
    every result, as a row of `vectors`. The powers are taken once, into a table by context and position.
    """

    def __init__(self, vectors: ArrayLike, weights: ArrayLike, propensities: ArrayLike = PROPENSITIES) -> None:
        self.vectors = to_floats(vectors, "context vectors")
        self.weights = to_floats(weights, "weights of contexts")
        if self.vectors.ndim != 2 or self.weights.shape != self.vectors.shape[1:]:
            raise EluteError(
                f"context vectors of shape {self.vectors.shape} and weights of shape {self.weights.shape} do not "
                "match; give (contexts, dimensions) and (dimensions,)"
            )
        exponents = np.maximum(self.vectors @ self.weights + 1.0, 0.0)
        self._propensities = check_probabilities(propensities, "propensities") ** exponents[:, None]

    @property
    def propensities(self) -> Floats:
        """o(t, p) by (context, position)."""
        return self._propensities

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        context = self._check_context(shown)
        return _draw_clicks(rng, shown.relevance, shown.length, context, self.propensities)

    def probabilities(self, shown: ShownPages) -> Floats:
        context = self._check_context(shown)
        page, place = np.nonzero(shown.mask)
        p = np.zeros(shown.relevance.shape)
        p[page, place] = self.propensities[context[page, place], place] * shown.relevance[page, place]
        return p

    def _check_context(self, shown: ShownPages) -> NDArray[np.int32]:
        """The contexts shown, once it is sure that the table has them."""
        contexts, ranks = self.propensities.shape
        require_ranks(ranks, shown, "propensities")
        if shown.context is None:
            raise EluteError("this user's clicks depend on contexts, but the pages have none; give the context ids")
        if (page := _find_unknown(shown.context, shown.length, contexts)) >= 0:
            raise EluteError(f"page {page} has a context id outside 0 to {contexts - 1}; draw more contexts")
        return shown.context


@jit
def _find_unknown(context: NDArray[np.int32], length: NDArray[np.int64], contexts: int) -> int:
    """The first page with a context that the table lacks; -1 if none has one."""
    for page in range(length.shape[0]):
        for k in range(length[page]):
            if not 0 <= context[page, k] < contexts:
                return page
    return -1


@jit
def _draw_clicks(
    rng: np.random.Generator,
    relevance: Floats,
    length: NDArray[np.int64],
    context: NDArray[np.int32],
    propensities: Floats,
) -> Clicks:
    """One uniform a place."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    for page in range(relevance.shape[0]):
        for k in range(length[page]):
            out[page, k] = rng.random() < propensities[context[page, k], k] * relevance[page, k]
    return out

"""Regression EM (Wang et al. 2018): the position-based model by EM, with the ranker as its regression."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import sigmoid_loss
from elute.neural.networks import Key
from elute.options.learners import SETTINGS
from elute.options.takes import declares


@declares(**SETTINGS["rem"])
@dataclass(frozen=True, kw_only=True)
class RegressionEM(Learner):
    """P(click) = θ_k · sigmoid(f(x)). A click means examined and relevant; without one both are possible.

    Each step takes the posterior of relevance as the ranker's target (its mean rather than a draw from it, which
    has the same gradient on average and less noise) and moves θ towards the mean posterior of examination.
    """

    rate: float = 0.05
    """Share of θ that a batch renews."""
    start: float = 0.9
    """θ at every position before the first step."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        return {"ranker": self.network.init(key, n_features)}

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"propensities": jnp.full(positions, self.start)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        scores = self.network.scores(params["ranker"], seen.x, key)
        relevant, examined = posteriors(jax.nn.sigmoid(scores), memory["propensities"], seen.clicks)
        shown = seen.mask.sum(axis=0)
        mean = jnp.where(seen.mask, examined, 0.0).sum(axis=0) / jnp.maximum(shown, 1)
        moved = memory["propensities"] + self.rate * (mean - memory["propensities"])
        after = {"propensities": jnp.where(shown > 0, moved, memory["propensities"])}
        return sigmoid_loss(scores, relevant, seen.mask), jax.lax.stop_gradient(after)

    def log_propensities(self, state: State) -> Array:
        return jnp.log(state.memory["propensities"])


def posteriors(relevance: Array, propensities: Array, clicks: Array) -> tuple[Array, Array]:
    """P(relevant) and P(examined) after a click or none (Eq. 1 of Wang et al.)."""
    unclicked = jnp.maximum(1 - propensities * relevance, 1e-6)
    relevant = clicks + (1 - clicks) * relevance * (1 - propensities) / unclicked
    examined = clicks + (1 - clicks) * propensities * (1 - relevance) / unclicked
    return jax.lax.stop_gradient(relevant), jax.lax.stop_gradient(examined)

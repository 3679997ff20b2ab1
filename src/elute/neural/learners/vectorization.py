"""Relevance and observation as vectors (after Chen et al. 2022): a click is as likely as their product is large.

P(click) ∝ r(x)·o(k) with vectors of a few dimensions, all above 0; with one dimension this is the position-based
model. Lists are compared by the softmax loss, so the scale is free. A position's propensity is its product with the
mean relevance. Documents are ranked by their product with one base vector, the mean observation of what was shown; in
Chen et al. a second network predicts the base vector from features, so that it differs between documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.learner import ROWS, Groups, Learner, Memory, State
from elute.neural.losses import softmax_loss
from elute.neural.networks import Key, run
from elute.options.learners import SETTINGS
from elute.options.takes import declares


@declares(**SETTINGS["vectorization"])
@dataclass(frozen=True, kw_only=True)
class Vectorization(Learner):
    """Vectors of `dimensions` for documents and positions."""

    dimensions: int = 8
    rate: float = 0.01
    """Share of the means that a batch renews."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        ranker, observation = jax.random.split(key)
        return {
            "ranker": self.network.init(ranker, n_features, self.dimensions),
            "observation": 0.1 * jax.random.normal(observation, (positions, self.dimensions)),
        }

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"relevance": jnp.ones(self.dimensions), "shown": jnp.ones(positions)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        relevance = jax.nn.softplus(run(params["ranker"], seen.x, self.network.dropout, key))
        observation = jax.nn.softplus(params["observation"])
        clicks = jnp.log((relevance * observation).sum(axis=-1))
        documents = jnp.maximum(seen.mask.sum(), 1)
        mean = jnp.where(seen.mask[..., None], relevance, 0.0).sum(axis=(0, 1)) / documents
        after = {
            "relevance": memory["relevance"] + self.rate * (mean - memory["relevance"]),
            "shown": memory["shown"] + self.rate * (seen.mask.mean(axis=0) - memory["shown"]),
        }
        return softmax_loss(clicks, seen.clicks, seen.mask), jax.lax.stop_gradient(after)

    def base_vector(self, state: State) -> Array:
        shown = state.memory["shown"]
        return shown @ jax.nn.softplus(state.params["observation"]) / shown.sum()

    def scores(self, state: State, features: Array) -> Array:
        vectors = jax.lax.map(lambda row: run(state.params["ranker"], row), features, batch_size=ROWS)
        return jax.nn.softplus(vectors) @ self.base_vector(state)

    def log_propensities(self, state: State) -> Array:
        return jnp.log(jax.nn.softplus(state.params["observation"]) @ state.memory["relevance"])

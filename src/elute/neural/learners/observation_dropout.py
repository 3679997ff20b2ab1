"""The additive two-tower model with observation dropout (Zhang et al. 2023).

The click's logit is f(x) + g(k). Where the logging policy is strong, position foretells relevance, and g takes
part of what f should learn. Hiding the position at random weakens g; how much is for the user to tune.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import LossName, get_loss
from elute.neural.networks import Key, affine, drop_units, init_dense
from elute.options.learners import SETTINGS
from elute.options.takes import declares

WIDTH = 16


def init_observation(key: Key, positions: int) -> Groups:
    """An embedding of positions, and the layer that makes a logit of it."""
    embedding, out = jax.random.split(key)
    return {
        "embedding": jax.random.normal(embedding, (positions, WIDTH)) * WIDTH**-0.5,
        "out": init_dense(out, WIDTH, 1),
    }


def observation_logits(observation: Groups) -> Array:
    """g by position."""
    return affine(observation["out"], jax.nn.elu(observation["embedding"]))[:, 0]


@declares(**SETTINGS["observation-dropout"])
@dataclass(frozen=True, kw_only=True)
class ObservationDropout(Learner):
    """Two towers, with the observation tower's output dropped at random: f must explain the click without it.

    A `drop` of 0 is the plain two-tower model.
    """

    objective: LossName = "sigmoid"
    drop: float = 0.5
    """Share of documents whose position is hidden."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        ranker, observation = jax.random.split(key)
        return {
            "ranker": self.network.init(ranker, n_features),
            "observation": init_observation(observation, positions),
        }

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        return self._run_towers(params, seen, key)[0], memory

    def _run_towers(self, params: Groups, seen: View, key: Key | None) -> tuple[Array, Array]:
        """The loss of the two towers, and the ranker's scores."""
        of_units, of_tower = (None, None) if key is None else jax.random.split(key)
        scores = self.network.scores(params["ranker"], seen.x, of_units)
        observation = jnp.broadcast_to(observation_logits(params["observation"]), seen.mask.shape)
        if of_tower is not None and self.drop > 0:
            observation = drop_units(observation, self.drop, of_tower)
        return get_loss(self.objective)(scores + observation, seen.clicks, seen.mask), scores

    def log_propensities(self, state: State) -> Array:
        """Differences of logits: ratios of odds with the sigmoid loss, of propensities with the softmax loss."""
        return observation_logits(state.params["observation"])

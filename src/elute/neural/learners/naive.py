"""Naive: clicks taken as relevance (Eq. 2 of the UPE paper)."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import LossName, get_loss
from elute.neural.networks import Key


@dataclass(frozen=True, kw_only=True)
class Naive(Learner):
    """A ranker trained on raw clicks; all propensities are 1."""

    objective: LossName = "softmax"

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        return {"ranker": self.network.init(key, n_features)}

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"log_propensities": jnp.zeros(positions)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        scores = self.network.scores(params["ranker"], seen.x, key)
        return get_loss(self.objective)(scores, seen.clicks, seen.mask), memory

    def log_propensities(self, state: State) -> Array:
        return state.memory["log_propensities"]

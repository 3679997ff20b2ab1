"""Inverse propensity weighting with given propensities (Eq. 3a of the UPE paper)."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from elute.neural.data import View, check_propensities
from elute.neural.dual import inverse_propensity
from elute.neural.learner import Groups, Memory
from elute.neural.learners.naive import Naive
from elute.neural.losses import get_loss
from elute.neural.networks import Key


@dataclass(frozen=True, kw_only=True)
class IPW(Naive):
    """A ranker trained on clicks weighted by p₁ / p_k, so that position 1 weighs 1."""

    given: tuple[float, ...] = ()
    """Propensities by position."""

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"log_propensities": jnp.log(jnp.asarray(check_propensities(self.given, positions)))}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        scores = self.network.scores(params["ranker"], seen.x, key)
        targets = seen.clicks * inverse_propensity(memory["log_propensities"])
        return get_loss(self.objective)(scores, targets, seen.mask), memory

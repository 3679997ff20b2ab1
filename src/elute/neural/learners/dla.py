"""The dual learning algorithm (Ai et al. 2018; Eq. 3 of the UPE paper).

Ranker and propensities each learn from clicks weighted by the other's inverse, both on the same batch. Its fixed
points are right where examination and relevance are independent (Eq. 4); under a strong logging policy it takes
part of the relevance for propensity.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from elute.neural import dual
from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import softmax_loss
from elute.neural.networks import Key


@dataclass(frozen=True, kw_only=True)
class DLA(Learner):
    """Ranker and propensities as each other's weights."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        return {"ranker": self.network.init(key, n_features), "dual": dual.init(positions)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        scores = self.network.scores(params["ranker"], seen.x, key)
        targets = seen.clicks * dual.inverse_propensity(dual.logits(params["dual"]))
        return softmax_loss(scores, targets, seen.mask) + dual.loss(params["dual"], scores, seen), memory

    def log_propensities(self, state: State) -> Array:
        return dual.logits(state.params["dual"])

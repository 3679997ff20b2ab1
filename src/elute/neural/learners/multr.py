"""Model-based learning with doubly robust targets and counterfactual lists (after MULTR, Luo et al. 2023).

MULTR's own paper trains a simulator of clicks in advance and keeps it; its objective is the inverse-propensity loss of
real clicks, less that of the simulator's pseudo clicks, plus the unweighted loss of pseudo clicks. This learner is not
that: it has the two parts that the UPE paper names, "counterfactual data augmentation and doubly robust approach", on
top of dual learning:

- A simulator of clicks q(x, k), a network of document and position, learns from the logged clicks.
- The ranker's target for a shown document is doubly robust (Oosterhuis 2022, for one deterministic ranking): the
  imputed relevance r̂ = q(x, 1), corrected by what the click says beyond it,
      t = r̂ + (c - p_k r̂) / max(p_k, τ),   with p₁ = 1.
  Where p_k ≥ τ this is c / p_k, unbiased whatever the simulator says. Below it, the weight of the click stays
  bounded by 1/τ, and imputation makes up for what clipping takes away.
- Counterfactual lists: the same documents in random order, with the clicks the simulator expects there, weighted
  likewise.
- Propensities come from the dual problem (Eq. 3b).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural import dual, joint
from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import sigmoid_loss, softmax_loss
from elute.neural.networks import Key
from elute.options.learners import SETTINGS
from elute.options.takes import declares


@declares(**SETTINGS["multr"])
@dataclass(frozen=True, kw_only=True)
class MULTR(Learner):
    """Ranker on doubly robust and counterfactual targets."""

    clip: float = 0.1
    """τ: the smallest propensity to weigh by, relative to that of position 1."""
    counterfactual: float = 1.0
    """Weight of the loss on counterfactual lists."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        ranker, document, position = jax.random.split(key, 3)
        return {
            "ranker": self.network.init(ranker, n_features),
            "dual": dual.init(positions),
            "simulator": {
                "document": joint.init(document, n_features),
                "position": joint.init_positions(position, positions),
            },
        }

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        of_order, of_units = (None, None) if key is None else jax.random.split(key)
        scores = self.network.scores(params["ranker"], seen.x, of_units)
        model = params["simulator"]
        encoded = joint.encode(model["document"], seen.x)
        simulated = joint.score(model["document"], encoded + model["position"])
        chances = jax.nn.sigmoid(joint.score_everywhere(model["document"], encoded, model["position"]))
        weights = 1 / dual.inverse_propensity(dual.logits(params["dual"]))
        order = shuffle_places(seen.mask, of_order)
        targets = doubly_robust_targets(seen.clicks, weights, chances[:, :, 0], self.clip)
        elsewhere = _take_diagonal(jnp.take_along_axis(chances, order[:, :, None], axis=1)) / jnp.maximum(
            weights, self.clip
        )
        return (
            softmax_loss(scores, targets, seen.mask)
            + self.counterfactual * softmax_loss(jnp.take_along_axis(scores, order, axis=1), elsewhere, seen.mask)
            + dual.loss(params["dual"], scores, seen)
            + sigmoid_loss(simulated, seen.clicks, seen.mask)
        ), memory

    def log_propensities(self, state: State) -> Array:
        return dual.logits(state.params["dual"])


def doubly_robust_targets(clicks: Array, propensities: Array, imputed: Array, clip: float) -> Array:
    """Targets by document; propensities by position, relative to position 1."""
    return imputed + (clicks - propensities * imputed) / jnp.maximum(propensities, clip)


def shuffle_places(mask: Array, key: Key | None) -> Array:
    """For each list, places in random order, those without a document last; without a key, in reverse order."""
    order = (
        jnp.broadcast_to(-jnp.arange(mask.shape[1]), mask.shape) if key is None else jax.random.bits(key, mask.shape)
    )
    places: Array = jnp.lexsort((order, ~mask), axis=-1)
    return places


def _take_diagonal(by_position: Array) -> Array:
    """(lists, places, positions): each document at its own place."""
    own: Array = jnp.diagonal(by_position, axis1=1, axis2=2)
    return own

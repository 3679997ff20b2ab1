"""The two-tower model with gradient reversal (Zhang et al. 2023).

An adversary reads relevance off the observation tower's representation of a position. The representation is pushed
the other way, to unlearn what foretells relevance; how strongly is for the user to tune.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.learner import Groups, Memory
from elute.neural.learners.observation_dropout import WIDTH, ObservationDropout
from elute.neural.losses import sigmoid_loss
from elute.neural.networks import Key, affine, init_dense
from elute.options.learners import SETTINGS
from elute.options.takes import declares


@declares(**SETTINGS["grad-reversal"])
@dataclass(frozen=True, kw_only=True)
class GradientReversal(ObservationDropout):
    """Two towers, and an adversary that predicts the relevance sigmoid(f) from a position's embedding.

    By cross-entropy, not squared error: pushed the other way, squares run off.
    """

    drop: float = 0.0
    reversal: float = 1.0
    """How strongly the representation is pushed away from foretelling relevance."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        towers, adversary = jax.random.split(key)
        return super().init_parameters(towers, n_features, positions) | {"adversary": init_dense(adversary, WIDTH, 1)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        towers, scores = self._run_towers(params, seen, key)
        representation = reverse_gradient(jax.nn.elu(params["observation"]["embedding"]), self.reversal)
        predicted = affine(params["adversary"], representation)[:, 0]
        relevance = jax.lax.stop_gradient(jax.nn.sigmoid(scores))
        foretold = sigmoid_loss(jnp.broadcast_to(predicted, seen.mask.shape), relevance, seen.mask)
        return towers + foretold, memory


def reverse_gradient(x: Array, strength: float) -> Array:
    """`x`, with its gradient turned round and scaled by `strength`."""
    return jax.lax.stop_gradient((1 + strength) * x) - strength * x

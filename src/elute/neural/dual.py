"""The dual problem of propensities (Eq. 3b of the UPE paper), shared by the learners that solve it.

A table of logits by position, bounded below by ELU, as in the public code of dual learning: a single position cannot
run away from the others to -∞ on few clicks. Weights are ratios to position 1 and are never differentiated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.losses import softmax_loss

_MOST = 10.0
"""Scores of a network that has just started may differ by more than single precision can raise e to."""


def init(positions: int) -> Array:
    """Logits before the first step: all positions alike."""
    return jnp.zeros(positions)


def logits(dual: Array) -> Array:
    """Log propensities by position, up to a constant."""
    return jax.nn.elu(dual)


def inverse_propensity(log_propensities: Array) -> Array:
    """p₁ / p_k by position."""
    return jax.lax.stop_gradient(jnp.exp(log_propensities[0] - log_propensities))


def inverse_relevance(scores: Array) -> Array:
    """f₁ / f_k by list and position, where f is the softmax of the scores; at most e^`_MOST`."""
    return jax.lax.stop_gradient(jnp.exp(jnp.minimum(scores[:, :1] - scores, _MOST)))


def loss(dual: Array, scores: Array, seen: View) -> Array:
    """Clicks, weighted by inverse relevance, against the propensities (Eq. 3b)."""
    by_position = jnp.broadcast_to(logits(dual), seen.mask.shape)
    return softmax_loss(by_position, seen.clicks * inverse_relevance(scores), seen.mask)

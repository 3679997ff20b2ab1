"""Probabilities as their logarithms, with gradients that stay finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.clicks import backend
from elute.clicks.backend import jnp

if TYPE_CHECKING:
    import jax

LARGEST_LOGIT = 30.0
"""What a fit on counts writes for a probability of 1 (and minus that for 0): within 1e-13, and finite."""

LOG_NEVER = -1e30
"""The logarithm of 0 where a gradient passes: minus infinity on both sides of a sum would make it NaN."""

_LOG_HALF = -float(np.log(2.0))


def log_sigmoid(logit: jax.Array) -> jax.Array:
    """log P of what has these log odds."""
    return backend.log_sigmoid(logit)


def log_not_sigmoid(logit: jax.Array) -> jax.Array:
    """log(1 - P) of what has these log odds."""
    return backend.log_sigmoid(-logit)


def log1mexp(log_p: jax.Array) -> jax.Array:
    """log(1 - p) from log p, accurate at both ends: expm1 where p is large, log1p where it is small."""
    large = log_p > _LOG_HALF
    return jnp.where(
        large,
        jnp.log(-jnp.expm1(jnp.where(large, log_p, _LOG_HALF))),
        jnp.log1p(-jnp.exp(jnp.where(large, _LOG_HALF, log_p))),
    )


def log_outcome(log_p: jax.Array, happened: jax.Array) -> jax.Array:
    """log P of what happened: p where `happened`, 1 - p elsewhere."""
    return jnp.where(happened, log_p, log1mexp(log_p))


def to_logits(probability: ArrayLike) -> NDArray[np.float32]:
    """Log odds of probabilities, cut at ±`LARGEST_LOGIT`."""
    p = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore"):
        logit = np.log(p) - np.log1p(-p)
    return np.asarray(np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT), np.float32)

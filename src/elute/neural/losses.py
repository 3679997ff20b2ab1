"""Losses over lists of any length: arrays (lists, positions) and a mask of what is a document.

Each is the mean over lists that have a document of a sum over documents, and each is affine in its targets. That
is why inverse propensity weighting is unbiased with any of them: a click's weight has the relevance as its mean, and
the mean passes through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from elute.errors import EluteError

Loss = Callable[[Array, Array, Array], Array]
LossName = Literal["softmax", "sigmoid", "pairwise"]

_NOWHERE = -1e30
"""A score that no document has; finite, so that a list without documents gives 0 and not NaN."""


def log_softmax(scores: Array, mask: Array) -> Array:
    """Over the documents of a list; 0 where there is none."""
    return jnp.where(mask, jax.nn.log_softmax(jnp.where(mask, scores, _NOWHERE), axis=-1), 0.0)


def mean_over_lists(by_document: Array, mask: Array) -> Array:
    """Sum over the documents of each list, mean over the lists that have any."""
    some = jnp.maximum(mask.any(axis=-1).sum(), 1)
    return jnp.where(mask, by_document, 0.0).sum() / some


def softmax_loss(scores: Array, targets: Array, mask: Array) -> Array:
    """-Σ target · log softmax(score)."""
    return mean_over_lists(-targets * log_softmax(scores, mask), mask)


def attention_rank(scores: Array, wanted: Array, mask: Array) -> Array:
    """Cross-entropy from the softmax of the `wanted` scores (Eq. 10 of the UPE paper)."""
    return softmax_loss(scores, jnp.exp(log_softmax(wanted, mask)), mask)


def sigmoid_loss(scores: Array, targets: Array, mask: Array) -> Array:
    """Binary cross-entropy by document; a target may exceed 1, as a weighted click does."""
    by_document = -targets * jax.nn.log_sigmoid(scores) - (1 - targets) * jax.nn.log_sigmoid(-scores)
    return mean_over_lists(by_document, mask)


def pairwise_loss(scores: Array, targets: Array, mask: Array) -> Array:
    """Σᵢ targetᵢ Σⱼ log(1 + exp(scoreⱼ - scoreᵢ)): an upper bound of the rank of what has a target."""
    return mean_over_lists(targets * jnp.where(mask_pairs(mask), disorder(scores), 0.0).sum(axis=-1), mask)


def disorder(scores: Array) -> Array:
    """log(1 + exp(scoreⱼ - scoreᵢ)) as (lists, i, j): what it costs that i should stand above j."""
    return jax.nn.softplus(scores[..., None, :] - scores[..., :, None])


def mask_pairs(mask: Array) -> Array:
    """The (lists, i, j) that are two different documents."""
    return mask[..., :, None] & mask[..., None, :] & ~jnp.eye(mask.shape[-1], dtype=bool)


def get_loss(name: str) -> Loss:
    """The loss of that name."""
    losses: dict[str, Loss] = {"softmax": softmax_loss, "sigmoid": sigmoid_loss, "pairwise": pairwise_loss}
    if name not in losses:
        raise EluteError(f"no loss '{name}'; there are: {', '.join(losses)}")
    return losses[name]

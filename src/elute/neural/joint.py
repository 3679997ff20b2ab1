"""A network of a document and a position: what UPE's propensity model (Eq. 8 to 14) and a click simulator share.

Encoder and position embedding are added and passed through one hidden layer. That layer's product with the sum is
the sum of two products, so a document is scored at every position for little more than at one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.networks import Key, Layer, affine, init_dense, run

Document = dict[str, Any]
"""`encoder`: a layer; `network`: two layers."""

WIDTH = 64
HIDDEN = 256

_MOST = 80.0
"""Single precision can raise e to ± so much."""


def init(key: Key, n_features: int) -> Document:
    """First parameters of the part that reads documents."""
    encoder, hidden, out = jax.random.split(key, 3)
    return {
        "encoder": init_dense(encoder, n_features, WIDTH),
        "network": [init_dense(hidden, WIDTH, HIDDEN), init_dense(out, HIDDEN, 1)],
    }


def init_positions(key: Key, positions: int) -> Array:
    """First embeddings of positions (Eq. 11)."""
    embeddings: Array = jax.random.normal(key, (positions, WIDTH)) * WIDTH**-0.5
    return embeddings


def encode(document: Document, x: Array) -> Array:
    """m = Encoder(x), one layer (Eq. 8)."""
    return jax.nn.elu(affine(document["encoder"], x))


def score(document: Document, encoded: Array) -> Array:
    """FFN(m), or FFN(m + p) where positions are added (Eq. 9, 12)."""
    return run(document["network"], encoded)[..., 0]


def score_everywhere(document: Document, encoded: Array, embeddings: Array) -> Array:
    """FFN(m + p_k) for every document and every position k (Eq. 14): (…, positions). It has no gradient: nothing is
    trained through it."""
    document, encoded, embeddings = jax.lax.stop_gradient((document, encoded, embeddings))
    last: Layer = document["network"][1]
    return _hidden_units(document, encoded, embeddings) @ last["weight"][:, 0] + last["bias"][0]


def mean_score_everywhere(document: Document, encoded: Array, embeddings: Array, mask: Array) -> Array:
    """The mean of `score_everywhere` over the documents of a mask, by position: the last layer is linear, so it can
    wait until after the mean. It has no gradient either."""
    document, encoded, embeddings = jax.lax.stop_gradient((document, encoded, embeddings))
    last: Layer = document["network"][1]
    shown = mask[..., None, None]
    total = jnp.where(shown, _hidden_units(document, encoded, embeddings), 0.0).sum(axis=tuple(range(mask.ndim)))
    return total @ last["weight"][:, 0] / jnp.maximum(mask.sum(), 1) + last["bias"][0]


def _hidden_units(document: Document, encoded: Array, embeddings: Array) -> Array:
    """(…, positions, hidden): the hidden layer for every document at every position.

    The exponential in ELU is of a sum, and so a product of two that are computed once a document and once a position.
    """
    first: Layer = document["network"][0]
    a, b = affine(first, encoded)[..., None, :], embeddings @ first["weight"]
    product = jnp.exp(jnp.clip(a, -_MOST, _MOST)) * jnp.exp(jnp.clip(b, -_MOST, _MOST))
    return jnp.where(a + b > 0, a + b, product - 1)

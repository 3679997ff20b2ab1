"""A network of a document and a position: what UPE's propensity model (Eq. 8 to 14) and a click simulator share.

Encoder and position embedding are added and passed through one hidden layer. That layer's product with the sum is
the sum of two products, so a document is scored at every position for little more than at one.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import Array

from elute.neural.networks import Key, Layers, affine, dense, run

Document = dict[str, Any]
"""`encoder`: a layer; `network`: two layers."""

WIDTH = 64
HIDDEN = 256


def init(key: Key, n_features: int) -> Document:
    """First parameters of the part that reads documents."""
    encoder, hidden, out = jax.random.split(key, 3)
    return {
        "encoder": dense(encoder, n_features, WIDTH),
        "network": [dense(hidden, WIDTH, HIDDEN), dense(out, HIDDEN, 1)],
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


def everywhere(document: Document, encoded: Array, embeddings: Array) -> Array:
    """FFN(m + p_k) for every document and every position k (Eq. 14): (…, positions)."""
    layers: Layers = document["network"]
    hidden = affine(layers[0], encoded)[..., None, :] + embeddings @ layers[0]["weight"]
    return affine(layers[1], jax.nn.elu(hidden))[..., 0]

"""UPE after two versions of its authors' public code: the first, and the one that is there now.

Both have three listwise losses on one batch: the network without positions against the logging scores; with positions
against clicks × inverse relevance; the ranker against clicks × inverse propensity. Nothing is frozen. Propensities are
the mean of softmaxes over the list as shown and 16 permutations of it. In the first version a transformer of two layers
reads the documents of a list together, and every optimiser is made anew at every step; later it is one linear layer,
and optimisers persist.

What differs here: the ranker has no layer norms; lists that end early are masked; permutations share one pass of the
encoder, which knows no positions, so that only what it drops differs; the later version has no weight decay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

from elute.errors import EluteError
from elute.neural import dual
from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import attention_rank, log_softmax, softmax_loss
from elute.neural.networks import Key, Layer, affine, drop_units, init_dense

WIDTH, HIDDEN, HEADS, LAYERS = 64, 256, 8, 2
PERMUTATIONS = 16
DROPPED = 0.2

Block = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PublicUPE(Learner):
    """UPE after a version of the public code."""

    encoder: Literal["transformer", "linear"] = "transformer"

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        ranker, first, second, inner, hidden, out, position = jax.random.split(key, 7)
        blocks: Any = (
            init_dense(inner, WIDTH, WIDTH)
            if self.encoder == "linear"
            else [_init_block(part) for part in jax.random.split(inner, LAYERS)]
        )
        return {
            "ranker": self.network.init(ranker, n_features),
            "document": {
                "features": [init_dense(first, n_features, HIDDEN), init_dense(second, HIDDEN, WIDTH)],
                "encoder": blocks,
                "network": [init_dense(hidden, WIDTH, HIDDEN), init_dense(out, HIDDEN, 1)],
            },
            "position": jax.random.normal(position, (positions, WIDTH)),
        }

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"log_propensities": jnp.zeros(positions)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        if seen.logging is None:
            raise EluteError("UPE needs the logging policy's scores; pass them")
        of_units, of_encoder, of_order = (None,) * 3 if key is None else jax.random.split(key, 3)
        scores = self.network.scores(params["ranker"], seen.x, of_units)
        document = params["document"]
        encoded = self.encode(document, seen.x, seen.mask, of_encoder)
        log_p = adjust(document, encoded, params["position"], seen.mask, of_order)
        return (
            attention_rank(score(document, encoded), seen.logging, seen.mask)
            + softmax_loss(
                score(document, encoded + params["position"]), seen.clicks * dual.inverse_relevance(scores), seen.mask
            )
            + softmax_loss(scores, seen.clicks * dual.inverse_propensity(log_p), seen.mask)
        ), {"log_propensities": log_p}

    def encode(self, document: Block, x: Array, mask: Array, key: Key | None) -> Array:
        """What the position embeddings are added to."""
        first, second = document["features"]
        found = affine(second, jax.nn.leaky_relu(affine(first, x)))
        if self.encoder == "linear":
            return affine(document["encoder"], found)
        for number, block in enumerate(document["encoder"]):
            found = run_block(block, found, mask, None if key is None else jax.random.fold_in(key, number))
        return found

    def log_propensities(self, state: State) -> Array:
        return state.memory["log_propensities"]


def score(document: Block, encoded: Array) -> Array:
    """The feed-forward network on top."""
    hidden, out = document["network"]
    return affine(out, jax.nn.leaky_relu(affine(hidden, encoded)))[..., 0]


def adjust(document: Block, encoded: Array, positions: Array, mask: Array, key: Key | None) -> Array:
    """Log propensities: the mean softmax over the list as shown and permutations of it; without a key, all shifts."""
    document, encoded, positions = jax.lax.stop_gradient((document, encoded, positions))
    hidden, out = document["network"]
    units = jax.nn.leaky_relu(affine(hidden, encoded)[:, :, None, :] + positions @ hidden["weight"])
    everywhere = units @ out["weight"][:, 0] + out["bias"][0]  # (lists, documents, positions)
    n = mask.shape[1]
    shown = jnp.arange(n)
    others = (
        (shown[1:, None] + shown) % n
        if key is None
        else jax.vmap(lambda own: jax.random.permutation(own, n))(jax.random.split(key, PERMUTATIONS))
    )

    def share(order: Array) -> Array:
        there = mask[:, order]
        found = jnp.where(there, jnp.exp(log_softmax(everywhere[:, order, shown], there)), 0.0)
        return found.sum(axis=0)

    return jnp.log(jax.vmap(share)(jnp.concatenate((shown[None], others))).sum(axis=0))


def run_block(block: Block, x: Array, mask: Array, key: Key | None) -> Array:
    """A layer of the transformer: attention over the list, then two dense layers, each added and normed."""
    of_attention, of_out, of_dense = (None,) * 3 if key is None else jax.random.split(key, 3)

    def split(layer: Layer) -> Array:
        return affine(layer, x).reshape(*x.shape[:2], HEADS, WIDTH // HEADS)

    query, other, value = (split(block[name]) for name in ("query", "key", "value"))
    weights = jnp.einsum("bihd,bjhd->bhij", query, other) / (WIDTH // HEADS) ** 0.5
    weights = _drop(jax.nn.softmax(jnp.where(mask[:, None, None, :], weights, -1e30), axis=-1), of_attention)
    heard = jnp.einsum("bhij,bjhd->bihd", weights, value).reshape(x.shape)
    x = _norm(block["norm"], x + _drop(affine(block["out"], heard), of_out))
    dense = affine(block["second"], jax.nn.leaky_relu(affine(block["first"], x)))
    return _norm(block["last"], x + _drop(dense, of_dense))


def _init_block(key: Key) -> Block:
    names = ("query", "key", "value", "out")
    *keys, first, second = jax.random.split(key, len(names) + 2)
    block = {name: init_dense(own, WIDTH, WIDTH) for name, own in zip(names, keys, strict=True)}
    block |= {"first": init_dense(first, WIDTH, HIDDEN), "second": init_dense(second, HIDDEN, WIDTH)}
    return block | {name: {"weight": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)} for name in ("norm", "last")}


def _norm(layer: Layer, x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12) * layer["weight"] + layer["bias"]


def _drop(x: Array, key: Key | None) -> Array:
    return x if key is None else drop_units(x, DROPPED, key)

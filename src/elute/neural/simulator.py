"""A user who reads a list of documents: P(click | list, position, clicks above), by two recurrent networks.

One reads the list and gives its context; the other goes down the page, told the context, the document, the position
and whether the one above was clicked (after the user simulator of MULTR, Luo et al. 2023). It learns from logged
clicks, each given those logged above it; it draws clicks one after the other, each given those it has drawn.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from elute.clicks.structure.recurrent import gru_inputs, gru_step, init_gru
from elute.neural.losses import sigmoid_loss
from elute.neural.networks import Key, affine, init_dense

Simulator = dict[str, Any]

WIDTH = 64


def init(key: Key, n_features: int, positions: int) -> Simulator:
    """First parameters."""
    document, context, position, page, out = jax.random.split(key, 5)
    return {
        "document": init_dense(document, n_features, WIDTH),
        "context": init_gru(context, WIDTH, WIDTH),
        "position": jax.random.normal(position, (positions, WIDTH)) * WIDTH**-0.5,
        "page": init_gru(page, 3 * WIDTH, WIDTH),
        "click": jnp.zeros(3 * WIDTH),
        "out": init_dense(out, WIDTH, 1),
    }


def loss(simulator: Simulator, x: Array, mask: Array, clicks: Array) -> Array:
    """Cross-entropy of the logged clicks, each given those above it."""

    def step(carry: tuple[Array, Array], place: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        (state, above), (gates, click) = carry, place
        state = gru_step(simulator["page"], state, gates + above[:, None] * simulator["click"])
        return (state, click), affine(simulator["out"], state)[:, 0]

    gates = _read(simulator, x, mask)
    _, odds = jax.lax.scan(step, (_nothing(x), jnp.zeros_like(clicks[:, 0])), (gates, clicks.T))
    return sigmoid_loss(odds.T, clicks, mask)


def draw(simulator: Simulator, x: Array, mask: Array, uniforms: Array) -> Array:
    """Clicks on lists (lists, positions): where a uniform number is below the chance. They have no gradient."""

    def step(carry: tuple[Array, Array], place: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        (state, above), (gates, uniform) = carry, place
        state = gru_step(simulator["page"], state, gates + above[:, None] * simulator["click"])
        chance = jax.nn.sigmoid(affine(simulator["out"], state)[:, 0])
        click = (uniform < chance).astype(x.dtype)
        return (state, click), click

    gates = _read(simulator, x, mask)
    _, clicks = jax.lax.scan(step, (_nothing(x), jnp.zeros_like(x[:, 0, 0])), (gates, uniforms.T))
    return jax.lax.stop_gradient(jnp.where(mask, clicks.T, 0.0))


def _read(simulator: Simulator, x: Array, mask: Array) -> Array:
    """(positions, lists, gates): all that the second network is told but the clicks."""
    documents = jax.nn.elu(affine(simulator["document"], x))

    def step(state: Array, place: tuple[Array, Array]) -> tuple[Array, None]:
        gates, there = place
        return jnp.where(there[:, None], gru_step(simulator["context"], state, gates), state), None

    inputs = gru_inputs(simulator["context"], documents).swapaxes(0, 1)
    context, _ = jax.lax.scan(step, _nothing(x), (inputs, mask.T))
    told = (
        jnp.broadcast_to(context[:, None], documents.shape),
        documents,
        jnp.broadcast_to(simulator["position"], documents.shape),
    )
    return gru_inputs(simulator["page"], jnp.concatenate(told, axis=-1)).swapaxes(0, 1)


def _nothing(x: Array) -> Array:
    return jnp.zeros((x.shape[0], WIDTH), x.dtype)

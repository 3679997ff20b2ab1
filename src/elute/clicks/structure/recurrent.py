"""Models that carry the page's history in a recurrent network: NCM and CACM.

Their marginal click probabilities have no closed form. Short pages: the sum over all click patterns. Longer ones:
the mean of P(click | clicks above) over patterns drawn from the model, which has less variance than counting clicks.
"""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp

from elute.clicks.page import DevicePages
from elute.clicks.structure.base import ClickStructure, draw, draw_uniforms, log_pages
from elute.clicks.structure.towers import Params

CLICK_SIZE = 4
STATE_SIZE = 32
"""Sizes of the CMIP paper's experiment."""


class RecurrentStructure(ClickStructure):
    """Subclasses have `samples`: up to this many patterns, or drawn ones, make a marginal probability."""

    samples: int

    def log_marginals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        width = pages.doc.shape[1]
        if 2**width <= self.samples:
            return _enumerate_patterns(self, params, features, pages)
        keys = jax.random.split(jax.random.key(0), self.samples)

        def add(total: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            return total + jnp.exp(draw(self, params, features, pages, draw_uniforms(pages, key))[1]), None

        total, _ = jax.lax.scan(add, jnp.zeros(pages.doc.shape), keys)
        return jnp.log(total / self.samples)


def _enumerate_patterns(
    structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages
) -> jax.Array:
    """Σ over patterns of P(pattern)·click; patterns that click on padding are other patterns again, so left out."""
    patterns = jnp.asarray(list(product((0, 1), repeat=pages.doc.shape[1])), jnp.uint8)

    def add(total: jax.Array, pattern: jax.Array) -> tuple[jax.Array, None]:
        clicked = jnp.broadcast_to(pattern, pages.doc.shape)
        log_p = log_pages(structure, params, features, pages._replace(click=clicked))
        possible = ~((clicked != 0) & ~pages.mask).any(axis=1)
        return total + jnp.where(possible, jnp.exp(log_p), 0.0)[:, None] * clicked, None

    total, _ = jax.lax.scan(add, jnp.zeros(pages.doc.shape), patterns)
    return jnp.log(total)


def init_gru(key: jax.Array, inputs: int, size: int) -> Params:
    """Weights of a gated recurrent unit (Cho et al. 2014), uniform within 1/√size."""
    keys, bound = jax.random.split(key, 4), size**-0.5
    shapes = {"input": (inputs, 3 * size), "state": (size, 3 * size), "input_bias": (3 * size,), "bias": (3 * size,)}
    return {
        name: jax.random.uniform(k, shape, minval=-bound, maxval=bound)
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def gru_inputs(params: Params, x: jax.Array) -> jax.Array:
    """What an input adds to the gates; computed for all places at once."""
    gates: jax.Array = x @ params["input"] + params["input_bias"]
    return gates


def gru_step(params: Params, state: jax.Array, inputs: jax.Array) -> jax.Array:
    """The next state from `gru_inputs`."""
    reset_in, update_in, new_in = jnp.split(inputs, 3, axis=-1)
    reset_h, update_h, new_h = jnp.split(state @ params["state"] + params["bias"], 3, axis=-1)
    update = jax.nn.sigmoid(update_in + update_h)
    new = jnp.tanh(new_in + jax.nn.sigmoid(reset_in + reset_h) * new_h)
    return (1.0 - update) * new + update * state

"""Networks as pure functions on parameters.

Parameters are plain lists of layers, a layer a dict of two arrays, so that they can be saved, averaged or run in
numpy without knowing anything of this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

Layer = dict[str, Array]
Layers = list[Layer]
Key = Array

_STEPS = 1 << 16
"""Dropout draws 16 bits a unit: half the random numbers of a float, and exact to 1 in 65,536."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A feed-forward network: sizes of the hidden layers, ELU after each, dropout after that (UPE paper, 5.1)."""

    hidden: tuple[int, ...] = (512, 256, 128)
    dropout: float = 0.1

    def init(self, key: Key, inputs: int, outputs: int = 1) -> Layers:
        """First parameters."""
        sizes = (inputs, *self.hidden, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        return [init_dense(*layer) for layer in zip(keys, sizes[:-1], sizes[1:], strict=True)]

    def scores(self, layers: Layers, x: Array, key: Key | None = None) -> Array:
        """One score a document; with a `key`, dropout is on."""
        return run(layers, x, self.dropout, key)[..., 0]


PAPER = Network()
LINEAR = Network(hidden=(), dropout=0.0)


def init_dense(key: Key, inputs: int, outputs: int) -> Layer:
    """A layer with weights and biases uniform in ±1/√inputs."""
    weight, bias = jax.random.split(key)
    bound = inputs**-0.5
    return {
        "weight": jax.random.uniform(weight, (inputs, outputs), minval=-bound, maxval=bound),
        "bias": jax.random.uniform(bias, (outputs,), minval=-bound, maxval=bound),
    }


def affine(layer: Layer, x: Array) -> Array:
    """x·W + b."""
    return x @ layer["weight"] + layer["bias"]


def run(layers: Sequence[Layer], x: Array, dropout: float = 0.0, key: Key | None = None) -> Array:
    """The network's outputs; ELU between layers, dropout only with a `key`."""
    for number, layer in enumerate(layers[:-1]):
        x = jax.nn.elu(affine(layer, x))
        if key is not None and dropout > 0:
            x = drop_units(x, dropout, jax.random.fold_in(key, number))
    return affine(layers[-1], x)


def drop_units(x: Array, rate: float, key: Key) -> Array:
    """`x` with a share `rate` of its units at zero and the rest scaled up, so that the mean stays."""
    cut = round(rate * _STEPS)
    keep = jax.random.bits(key, x.shape, jnp.uint16) >= cut
    return jnp.where(keep, x * (_STEPS / (_STEPS - cut)), 0.0)

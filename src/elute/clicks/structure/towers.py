"""From a document to numbers: an embedding of its id, or a network over its features.

Every tower has a bias of its own, shared by all documents. An embedding is that bias plus a deviation that starts at
0 where it is a single logit: a document never seen in training is then an average one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elute.clicks.backend import jnp
from elute.clicks.logspace import to_logits

if TYPE_CHECKING:
    import jax

Params = dict[str, Any]


class Tower(ABC):
    """What kind of function it is; parameters and features come as arguments."""

    needs_features: bool = True

    @abstractmethod
    def init(self, key: jax.Array, documents: int, width: int, size: int) -> Params:
        """First parameters, for `width` features and `size` outputs."""

    @abstractmethod
    def vectors(self, params: Params, features: jax.Array, doc: jax.Array) -> jax.Array:
        """Outputs by document, on a last axis more than `doc` has."""

    def logits(self, params: Params, features: jax.Array, doc: jax.Array) -> jax.Array:
        """The only output, by document."""
        return self.vectors(params, features, doc)[..., 0]


@dataclass(frozen=True)
class Embedding(Tower):
    """A vector of its own for every document id."""

    needs_features = False

    def init(self, key: jax.Array, documents: int, width: int, size: int) -> Params:
        if size == 1:
            return {"bias": jnp.zeros(1), "deviation": jnp.zeros((documents, 1))}
        import jax

        return {"bias": jnp.zeros(size), "deviation": jax.random.normal(key, (documents, size)) / size**0.5}

    def vectors(self, params: Params, features: jax.Array, doc: jax.Array) -> jax.Array:
        found: jax.Array = params["bias"] + jnp.take(params["deviation"], doc, axis=0, mode="clip")
        return found


@dataclass(frozen=True)
class Linear(Tower):
    """A linear function of the features."""

    def init(self, key: jax.Array, documents: int, width: int, size: int) -> Params:
        return init_layer(key, width, size)

    def vectors(self, params: Params, features: jax.Array, doc: jax.Array) -> jax.Array:
        return apply_layer(params, jnp.take(features, doc, axis=0, mode="clip"))


@dataclass(frozen=True)
class MLP(Tower):
    """Layers of these widths with ELU between them, over the features."""

    hidden: tuple[int, ...] = (64, 32)

    def init(self, key: jax.Array, documents: int, width: int, size: int) -> Params:
        import jax

        widths = (width, *self.hidden, size)
        keys = jax.random.split(key, len(widths) - 1)
        return {str(i): init_layer(keys[i], widths[i], widths[i + 1]) for i in range(len(widths) - 1)}

    def vectors(self, params: Params, features: jax.Array, doc: jax.Array) -> jax.Array:
        x = jnp.take(features, doc, axis=0, mode="clip")
        for i in range(len(self.hidden)):
            x = _elu(apply_layer(params[str(i)], x))
        return apply_layer(params[str(len(self.hidden))], x)


def _elu(x: jax.Array) -> jax.Array:
    import jax

    return jax.nn.elu(x)


def init_layer(key: jax.Array, inputs: int, outputs: int) -> Params:
    """Weights of variance 1/inputs, bias 0."""
    import jax

    return {"weight": jax.random.normal(key, (inputs, outputs)) / max(inputs, 1) ** 0.5, "bias": jnp.zeros(outputs)}


def apply_layer(params: Params, x: jax.Array) -> jax.Array:
    """x·W + b."""
    out: jax.Array = x @ params["weight"] + params["bias"]
    return out


def to_embedding(probability: NDArray[np.float64], typical: float) -> Params:
    """An embedding that gives these probabilities; NaN is a document nothing is known of: the typical one."""
    bias = to_logits(typical)
    known = np.where(np.isnan(probability), typical, probability)
    return {"bias": jnp.asarray(bias).reshape(1), "deviation": jnp.asarray((to_logits(known) - bias)[:, None])}

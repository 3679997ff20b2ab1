"""A tower's probability for every document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elute.clicks.backend import compile_first_static, jnp, sigmoid
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax


def score_documents(tower: Tower, params: Params, features: jax.Array) -> NDArray[np.float64]:
    """By document."""
    return np.asarray(_probabilities(tower, params, features), np.float64)


@compile_first_static
def _probabilities(tower: Tower, params: Params, features: jax.Array) -> jax.Array:
    return sigmoid(tower.logits(params, features, jnp.arange(features.shape[0])))

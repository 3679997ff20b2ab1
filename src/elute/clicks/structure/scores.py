"""A tower's probability for every document."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from elute.clicks.structure.towers import Params, Tower


def score_documents(tower: Tower, params: Params, features: jax.Array) -> NDArray[np.float64]:
    """By document."""
    return np.asarray(_probabilities(tower, params, features), np.float64)


@partial(jax.jit, static_argnums=0)
def _probabilities(tower: Tower, params: Params, features: jax.Array) -> jax.Array:
    return jax.nn.sigmoid(tower.logits(params, features, jnp.arange(features.shape[0])))

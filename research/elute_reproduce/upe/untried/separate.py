"""UPE with its confounded propensities y^p from a dual learning of its own, with a ranker of its own.

As 4.2.2 of the UPE paper can be read: "let y^p be the confounded propensity score by existing AutoULTR algorithms".
Dual learning is trained first and its propensities stay; then come the two stages of UPE, then its ranker.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from elute.neural.learner import Groups
from elute.neural.learners.upe import UPE
from elute.neural.networks import Key


@dataclass(frozen=True, kw_only=True)
class SeparateUPE(UPE):
    """UPE whose dual problem was solved before and is not trained."""

    given: tuple[float, ...]
    """Parameters of the dual problem by position, as `elute.neural.dual` has them."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        return {**super().init_parameters(key, n_features, positions), "dual": jnp.array(self.given)}

    def active_groups(self, step: Array) -> dict[str, Array]:
        return {**super().active_groups(step), "dual": jnp.bool_(False)}

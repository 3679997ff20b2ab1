"""Pairwise debiasing (Hu et al. 2019, Unbiased LambdaMART, with a network as its ranker).

The probability of a click is t⁺ times that of relevance and that of no click t⁻ times that of irrelevance, by
position; a pair (clicked i, not clicked j) weighs 1 / (t⁺ᵢ t⁻ⱼ). For position-based users no t⁻ of the position alone
exists: it depends on the document's relevance (limits paper). So this is a baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import disorder, mean_over_lists
from elute.neural.networks import Key
from elute.options.learners import SETTINGS
from elute.options.takes import declares


@declares(**SETTINGS["pairwise-debias"])
@dataclass(frozen=True, kw_only=True)
class PairwiseDebias(Learner):
    """Ranker on weighted pairs; ratios t⁺ and t⁻ by position, those of position 1 being 1."""

    rate: float = 0.05
    """Share of the ratios that a batch renews."""
    regularisation: float = 1.0
    """p: the ratios are taken to the power 1 / (1 + p)."""

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        return {"ranker": self.network.init(key, n_features)}

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"clicked": jnp.ones(positions), "unclicked": jnp.ones(positions)}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        scores = self.network.scores(params["ranker"], seen.x, key)
        plus, minus = memory["clicked"], memory["unclicked"]
        clicked = (seen.clicks > 0)[:, :, None]
        cost = jnp.where(clicked & ~clicked.swapaxes(1, 2) & seen.mask[:, None, :], disorder(scores), 0.0)
        loss = mean_over_lists((cost / (plus[:, None] * minus)).sum(axis=2), seen.mask)
        after = {
            "clicked": self._move_ratios(plus, (cost / minus).sum(axis=(0, 2))),
            "unclicked": self._move_ratios(minus, (cost / plus[:, None]).sum(axis=(0, 1))),
        }
        return loss, jax.lax.stop_gradient(after)

    def _move_ratios(self, ratios: Array, totals: Array) -> Array:
        """Ratios after a batch with these total costs by position; without one at position 1 they stay."""
        first = jnp.where(totals[0] > 0, totals[0], 1.0)
        target = (totals / first) ** (1 / (1 + self.regularisation))
        return jnp.where(totals[0] > 0, ratios + self.rate * (target - ratios), ratios)

    def log_propensities(self, state: State) -> Array:
        return jnp.log(state.memory["clicked"])

"""Model-based unbiased learning to rank (MULTR, Luo et al. 2023).

A simulator of users is trained in advance and kept. From then on the ranker's loss is the inverse-propensity loss of
real clicks, less that of the simulator's pseudo clicks on the same lists, plus the unweighted loss of its pseudo clicks
on the same documents in random order. The softmax loss is affine in its targets, so that this is one loss with, for the
document at position k, the target

    t = (p₁ / p_k) (c − ĉ) + mean over random orders of ĉ'.

Propensities come from the dual problem (Eq. 3b of the UPE paper). Where the simulator is right, the first term is zero
on average and the second proportional to relevance, whatever the propensities. Right propensities with a wrong
simulator are not enough: the two terms estimate relevance at different scales, p₁ and the mean propensity.

What differs from its authors' public code: until the simulator is trained the ranker learns by dual learning, theirs
waits; the simulator is smaller (one layer before its networks, which read a list in one direction) and is always told
the logged clicks as it learns, theirs half the time; random orders share one dropout; there are few of them a step
(theirs: 16 or 256), which changes nothing but noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from elute.neural import dual, simulator
from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import softmax_loss
from elute.neural.networks import Key
from elute.options.learners import SETTINGS
from elute.options.takes import declares


@declares(**SETTINGS["multr"])
@dataclass(frozen=True, kw_only=True)
class MULTR(Learner):
    """Ranker on real and pseudo clicks."""

    pretraining: int = 2_500
    """Steps that the simulator learns for; until then the ranker learns by dual learning."""
    orders: int = 4
    """Random orders of the documents of a list, a step."""

    @property
    def prepares(self) -> int:
        return self.pretraining

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        ranker, user = jax.random.split(key)
        return {
            "ranker": self.network.init(ranker, n_features),
            "dual": dual.init(positions),
            "simulator": simulator.init(user, n_features, positions),
        }

    def active_groups(self, step: Array) -> dict[str, Array]:
        return {"simulator": step < self.pretraining}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        of_units, of_clicks = (None, None) if key is None else jax.random.split(key)
        scores = self.network.scores(params["ranker"], seen.x, of_units)
        weights = dual.inverse_propensity(dual.logits(params["dual"]))
        early, user = step < self.pretraining, params["simulator"]
        real = seen.clicks * weights
        targets = jax.lax.cond(
            early, lambda: real, lambda: real + self._augment(jax.lax.stop_gradient(user), weights, seen, of_clicks)
        )
        learnt = jax.lax.cond(
            early,
            lambda user: simulator.loss(user, seen.x, seen.mask, seen.clicks),
            lambda _: jnp.zeros((), seen.x.dtype),
            user,
        )
        return softmax_loss(scores, targets, seen.mask) + dual.loss(params["dual"], scores, seen) + learnt, memory

    def _augment(self, user: simulator.Simulator, weights: Array, seen: View, key: Key | None) -> Array:
        """What pseudo clicks add to the targets."""
        shown, *keys = [None] * (self.orders + 1) if key is None else jax.random.split(key, self.orders + 1)
        here = simulator.draw(user, seen.x, seen.mask, _draw_uniforms(seen.mask, shown))
        elsewhere = [_draw_shuffled(user, seen, own) for own in keys]
        return jnp.mean(jnp.stack(elsewhere), axis=0) - weights * here

    def log_propensities(self, state: State) -> Array:
        return dual.logits(state.params["dual"])


def shuffle_places(mask: Array, key: Key | None) -> Array:
    """For each list, places in random order, those without a document last; without a key, in reverse order."""
    order = (
        jnp.broadcast_to(-jnp.arange(mask.shape[1]), mask.shape) if key is None else jax.random.bits(key, mask.shape)
    )
    places: Array = jnp.lexsort((order, ~mask), axis=-1)
    return places


def _draw_shuffled(user: simulator.Simulator, seen: View, key: Key | None) -> Array:
    """Pseudo clicks on the documents of each list in random order, brought back to the order shown."""
    of_order, of_clicks = (None, None) if key is None else jax.random.split(key)
    order = shuffle_places(seen.mask, of_order)
    x = jnp.take_along_axis(seen.x, order[:, :, None], axis=1)
    clicks = simulator.draw(user, x, seen.mask, _draw_uniforms(seen.mask, of_clicks))
    return jnp.take_along_axis(clicks, jnp.argsort(order, axis=1), axis=1)


def _draw_uniforms(mask: Array, key: Key | None) -> Array:
    """Without a key one half: what is more likely than not is clicked."""
    return jnp.full(mask.shape, 0.5) if key is None else jax.random.uniform(key, mask.shape)

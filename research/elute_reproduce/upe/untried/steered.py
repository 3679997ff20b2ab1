"""Optimisers whose rate lies in their state, so that one compiled training serves every rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from elute.neural.learner import Groups
from elute.neural.optimise import Optimiser


@dataclass(frozen=True, kw_only=True)
class Steered(Optimiser):
    """AdaGrad with persistent sums; or, `anew`, one that is made anew at every step: its sums start from 0, so that a
    step moves every weight by the whole rate, whatever its gradient (sign descent)."""

    anew: bool = False

    def transformation(self) -> optax.GradientTransformation:
        rule: Callable[..., optax.GradientTransformation] = _descend_by_sign if self.anew else self._adagrad
        return optax.chain(
            optax.clip_by_global_norm(self.clip), optax.inject_hyperparams(rule)(learning_rate=self.rate)
        )

    def _adagrad(self, learning_rate: Any) -> optax.GradientTransformation:
        return optax.adagrad(learning_rate, initial_accumulator_value=self.start, eps=1e-10)


def set_rate(groups: Groups, rate: float) -> Groups:
    """Optimiser states that go on at another rate."""
    found = {}
    for name, (clip, rule) in groups.items():
        found[name] = (clip, rule._replace(hyperparams={**rule.hyperparams, "learning_rate": jnp.float32(rate)}))
    return found


def _descend_by_sign(learning_rate: Any) -> optax.GradientTransformation:
    return optax.stateless(lambda updates, params: jax.tree.map(lambda leaf: -learning_rate * jnp.sign(leaf), updates))

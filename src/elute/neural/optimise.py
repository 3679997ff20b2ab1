"""Optimisers, through optax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import optax

from elute.errors import EluteError


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """AdaGrad or Adam at a learning `rate`, after clipping the norm of the gradient at `clip`.

    `start`: what AdaGrad's sums of squares start from. At 0, as in PyTorch, the first step moves every weight by the
    whole rate, whatever its gradient; at 0.1, as in TensorFlow and optax, small gradients start with small steps.
    """

    name: Literal["adagrad", "adam"] = "adagrad"
    rate: float = 0.05
    clip: float = 5.0
    start: float = 0.1

    def transformation(self) -> optax.GradientTransformation:
        """As optax knows it."""
        if self.name == "adagrad":
            rule = optax.adagrad(self.rate, initial_accumulator_value=self.start, eps=1e-10)
        elif self.name == "adam":
            rule = optax.adam(self.rate)
        else:
            raise EluteError(f"no optimiser '{self.name}'; there are: adagrad, adam")
        return optax.chain(optax.clip_by_global_norm(self.clip), rule)


ADAGRAD = Optimiser()

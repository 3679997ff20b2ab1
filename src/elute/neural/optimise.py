"""Optimisers, through optax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import optax

from elute.errors import EluteError


@dataclass(frozen=True)
class Optimiser:
    """AdaGrad or Adam at a learning `rate`, after clipping the norm of the gradient at `clip`.

    AdaGrad starts with empty sums of squares, as it was published; optax's own start, 0.1, slows small gradients.
    """

    name: Literal["adagrad", "adam"] = "adagrad"
    rate: float = 0.05
    clip: float = 5.0

    def transformation(self) -> optax.GradientTransformation:
        """As optax knows it."""
        if self.name == "adagrad":
            rule = optax.adagrad(self.rate, initial_accumulator_value=0.0, eps=1e-10)
        elif self.name == "adam":
            rule = optax.adam(self.rate)
        else:
            raise EluteError(f"no optimiser '{self.name}'; there are: adagrad, adam")
        return optax.chain(optax.clip_by_global_norm(self.clip), rule)


ADAGRAD = Optimiser()

"""The dynamic Bayesian network: attracted to click, then satisfied or not; goes on unless satisfied or tired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp, sigmoid
from elute.clicks.exact.chain_em import ChainCounts, ChainState
from elute.clicks.logspace import log_not_sigmoid, log_sigmoid, to_logits
from elute.clicks.models.sdbn import SDBN, Satisfied
from elute.clicks.page import DevicePages
from elute.clicks.structure.chain import Chances, Counted, LogChances, Readings, proportion
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax

_FIRST_CONTINUATION = 0.9


@dataclass(frozen=True)
class SatisfiedOrTired(Satisfied):
    """Goes on with γ after no click, with γ(1 - S) after a click (Chapelle and Zhang 2009; CMIP paper, 5.1.4)."""

    def init(self, key: jax.Array, width: int) -> Params:
        return super().init(key, width) | {"continuation": jnp.asarray(to_logits(_FIRST_CONTINUATION))}

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        untired = super().log_chances(params, features, pages)
        on, off = log_sigmoid(params["continuation"]), log_not_sigmoid(params["continuation"])
        after_none = (jnp.broadcast_to(x, untired.click.shape) for x in (on, off))
        return LogChances(untired.click, untired.skip, on + untired.on_click, *after_none)

    def chances(self, rates: dict[str, jax.Array]) -> Chances:
        on = rates["continuation"]
        return Chances(rates["attraction"], on * (1.0 - rates["satisfaction"]), on)

    def count(self, rates: dict[str, jax.Array], found: Readings) -> Counted:
        """After a click the user is satisfied, tired (unsatisfied, and leaves) or goes on; only the last shows."""
        gamma, s = rates["continuation"], rates["satisfaction"]
        left = found.turn - found.on
        satisfied = left * proportion(s, (1.0 - s) * (1.0 - gamma))
        on = found.on.sum() + found.on_skip.sum()
        off = (left - satisfied).sum() + (found.skip - found.on_skip).sum()
        return {
            "attraction": (found.clicked, found.read),
            "satisfaction": (satisfied, found.turn),
            "continuation": (on, on + off),
        }


class DBN(SDBN):
    """An SDBN whose user also tires. Fitted by EM. `prior`: of attraction and of satisfaction."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> SatisfiedOrTired:
        return SatisfiedOrTired(documents, ranks, tower)

    def _begin(self, seen: ChainCounts) -> ChainState:
        return ChainState(super()._begin(seen).tallies, {"continuation": np.array(_FIRST_CONTINUATION)})

    @property
    def continuation_(self) -> float:
        """γ."""
        return float(sigmoid(self.params_["continuation"]))

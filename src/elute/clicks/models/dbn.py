"""The dynamic Bayesian network: attracted to click, then satisfied or not; goes on unless satisfied or tired."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.exact.chain_em import ChainCounts, Rates, Tallies
from elute.clicks.exact.expectation import Expected
from elute.clicks.logspace import log_not_sigmoid, log_sigmoid, to_logits
from elute.clicks.models.sdbn import SDBN, Satisfied
from elute.clicks.page import DevicePages
from elute.clicks.structure.chain import Chances, LogChances
from elute.clicks.structure.towers import Params, Tower

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

    def chances(self, params: Params, features: jax.Array, pages: DevicePages) -> Chances:
        untired = super().chances(params, features, pages)
        on = jax.nn.sigmoid(params["continuation"])
        return Chances(untired.click, on * untired.on_click, on)


class DBN(SDBN):
    """An SDBN whose user also tires. Fitted by EM. `prior`: of attraction and of satisfaction."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> SatisfiedOrTired:
        return SatisfiedOrTired(documents, tower)

    def _begin(self, seen: ChainCounts) -> tuple[Tallies, Rates]:
        tallies, _ = super()._begin(seen)
        return tallies, {"continuation": np.array(_FIRST_CONTINUATION)}

    def _maximise(self, rates: Rates, expected: Expected, seen: ChainCounts) -> tuple[Tallies, Rates]:
        """After a click the user is satisfied, tired (unsatisfied, and leaves) or goes on; only the last shows."""
        gamma, s = float(rates["continuation"]), rates["satisfaction"]
        left = np.maximum(seen.turns - expected.on, 0.0)
        leaving = s + (1.0 - s) * (1.0 - gamma)
        satisfied = left * np.divide(s, leaving, out=np.ones_like(s), where=leaving > 0)
        on = float(expected.on.sum()) + expected.on_skip
        off = float((left - satisfied).sum()) + expected.skips - expected.on_skip
        tallies = {"attraction": (seen.clicks, expected.read), "satisfaction": (satisfied, seen.turns)}
        return tallies, {"continuation": np.array(on / (on + off) if on + off > 0 else gamma)}

    @property
    def continuation_(self) -> float:
        """γ."""
        return float(jax.nn.sigmoid(self.params_["continuation"]))

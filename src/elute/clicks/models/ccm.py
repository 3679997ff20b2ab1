"""The click chain model: going on after a click depends on how relevant the document was."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.base.model import Floats
from elute.clicks.exact.chain_em import ChainCounts, ChainModel, Rates, Tallies
from elute.clicks.exact.expectation import Expected
from elute.clicks.logspace import log_not_sigmoid, log_sigmoid, to_logits
from elute.clicks.page import DevicePages
from elute.clicks.structure.chain import ChainStructure, Chances, LogChances
from elute.clicks.structure.towers import Params, Tower

_FIRST = (0.9, 0.6, 0.4)


@dataclass(frozen=True)
class ClickChain(ChainStructure):
    """Goes on with α₁ after no click, with α₂(1 - R) + α₃R after a click; R is attraction (Guo et al. 2009)."""

    documents: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "continuation": jnp.asarray(to_logits(_FIRST)),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = self.tower.logits(params["attraction"], features, pages.doc)
        click, skip = log_sigmoid(logit), log_not_sigmoid(logit)
        on = log_sigmoid(params["continuation"])
        after_none = (jnp.broadcast_to(x, logit.shape) for x in (on[0], log_not_sigmoid(params["continuation"][0])))
        return LogChances(click, skip, jnp.logaddexp(on[1] + skip, on[2] + click), *after_none)

    def chances(self, params: Params, features: jax.Array, pages: DevicePages) -> Chances:
        click = jax.nn.sigmoid(self.tower.logits(params["attraction"], features, pages.doc))
        alpha = jax.nn.sigmoid(params["continuation"])
        return Chances(click, alpha[1] * (1.0 - click) + alpha[2] * click, alpha[0])


class CCM(ChainModel[ClickChain]):
    """Fitted by EM: a clicked document turns out relevant, with R, or not; the user goes on with α₃ or α₂."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> ClickChain:
        return ClickChain(documents, tower)

    def _begin(self, seen: ChainCounts) -> tuple[Tallies, Rates]:
        return {"attraction": (seen.clicks, seen.above)}, {"continuation": np.array(_FIRST)}

    def _maximise(self, rates: Rates, expected: Expected, seen: ChainCounts) -> tuple[Tallies, Rates]:
        alpha, r = rates["continuation"], rates["attraction"]
        on, off = expected.on, np.maximum(seen.turns - expected.on, 0.0)
        relevant_on = on * _proportion(r * alpha[2], (1.0 - r) * alpha[1])
        relevant = relevant_on + off * _proportion(r * (1.0 - alpha[2]), (1.0 - r) * (1.0 - alpha[1]))
        of_rest, of_relevant = float((seen.turns - relevant).sum()), float(relevant.sum())
        new = [
            expected.on_skip / expected.skips if expected.skips > 0 else alpha[0],
            float((on - relevant_on).sum()) / of_rest if of_rest > 0 else alpha[1],
            float(relevant_on.sum()) / of_relevant if of_relevant > 0 else alpha[2],
        ]
        tallies = {"attraction": (seen.clicks + relevant, expected.read + seen.turns)}
        return tallies, {"continuation": np.clip(new, 0.0, 1.0)}

    @property
    def continuation_(self) -> Floats:
        """α₁, α₂ and α₃."""
        return np.asarray(jax.nn.sigmoid(self.params_["continuation"]), np.float64)


def _proportion(one: Floats, other: Floats) -> Floats:
    """one/(one + other), and 0 where both are 0."""
    return np.divide(one, one + other, out=np.zeros_like(one), where=one + other > 0)

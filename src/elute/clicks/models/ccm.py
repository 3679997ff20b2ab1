"""The click chain model: going on after a click depends on how relevant the document was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp, sigmoid
from elute.clicks.base.model import Floats
from elute.clicks.exact.chain_em import ChainCounts, ChainModel, ChainState
from elute.clicks.logspace import log_not_sigmoid, log_sigmoid, to_logits
from elute.clicks.page import DevicePages
from elute.clicks.structure.attraction import attraction_logits, init_unseen
from elute.clicks.structure.chain import ChainStructure, Chances, Counted, LogChances, Readings, proportion
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax

_FIRST = (0.9, 0.6, 0.4)


@dataclass(frozen=True)
class ClickChain(ChainStructure):
    """Goes on with α₁ after no click, with α₂(1 - R) + α₃R after a click; R is attraction (Guo et al. 2009)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "ranked": init_unseen(self.documents, self.ranks),
            "continuation": jnp.asarray(to_logits(_FIRST)),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = attraction_logits(self.tower, params, features, pages)
        click, skip = log_sigmoid(logit), log_not_sigmoid(logit)
        on = log_sigmoid(params["continuation"])
        after_none = (jnp.broadcast_to(x, logit.shape) for x in (on[0], log_not_sigmoid(params["continuation"][0])))
        return LogChances(click, skip, jnp.logaddexp(on[1] + skip, on[2] + click), *after_none)

    def chances(self, rates: dict[str, jax.Array]) -> Chances:
        click, alpha = rates["attraction"], rates["continuation"]
        return Chances(click, alpha[1] * (1.0 - click) + alpha[2] * click, alpha[0])

    def count(self, rates: dict[str, jax.Array], found: Readings) -> Counted:
        """A clicked document turns out relevant, with R, or not; the user goes on with α₃ or α₂."""
        r, alpha = rates["attraction"], rates["continuation"]
        relevant_on = found.on * proportion(r * alpha[2], (1.0 - r) * alpha[1])
        relevant_off = (found.turn - found.on) * proportion(r * (1.0 - alpha[2]), (1.0 - r) * (1.0 - alpha[1]))
        relevant = relevant_on + relevant_off
        on = (found.on_skip.sum(), (found.on - relevant_on).sum(), relevant_on.sum())
        turns = (found.skip.sum(), (found.turn - relevant).sum(), relevant.sum())
        return {
            "attraction": (found.clicked + relevant, found.read + found.turn),
            "continuation": (jnp.stack(on), jnp.stack(turns)),
        }


class CCM(ChainModel[ClickChain]):
    """Fitted by EM."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> ClickChain:
        return ClickChain(documents, ranks, tower)

    def _begin(self, seen: ChainCounts) -> ChainState:
        return ChainState({"attraction": np.stack((seen.clicks, seen.above))}, {"continuation": np.array(_FIRST)})

    @property
    def continuation_(self) -> Floats:
        """α₁, α₂ and α₃."""
        return np.asarray(sigmoid(self.params_["continuation"]), np.float64)

"""The simplified dynamic Bayesian network: a DBN whose user never tires (γ = 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp, split_key
from elute.clicks.base.model import Floats
from elute.clicks.exact.chain_em import ChainCounts, ChainModel, ChainState
from elute.clicks.logspace import LOG_NEVER, log_not_sigmoid, log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.structure.attraction import attraction_logits, init_unseen
from elute.clicks.structure.chain import ChainStructure, Chances, Counted, LogChances, Readings
from elute.clicks.structure.scores import score_documents
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class Satisfied(ChainStructure):
    """Goes on always after no click, with 1 - S after a click (Chapelle and Zhang 2009)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        attraction, satisfaction = split_key(key)
        return {
            "attraction": self.tower.init(attraction, self.documents, width, 1),
            "ranked": init_unseen(self.documents, self.ranks),
            "satisfaction": self.tower.init(satisfaction, self.documents, width, 1),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = attraction_logits(self.tower, params, features, pages)
        unsatisfied = log_not_sigmoid(self.tower.logits(params["satisfaction"], features, pages.doc))
        return LogChances(
            log_sigmoid(logit),
            log_not_sigmoid(logit),
            unsatisfied,
            jnp.zeros_like(logit),
            jnp.full_like(logit, LOG_NEVER),
        )

    def chances(self, rates: dict[str, jax.Array]) -> Chances:
        return Chances(rates["attraction"], 1.0 - rates["satisfaction"], jnp.ones(()))

    def count(self, rates: dict[str, jax.Array], found: Readings) -> Counted:
        return {"attraction": (found.clicked, found.read), "satisfaction": (found.turn - found.on, found.turn)}


class SDBN(ChainModel[Satisfied]):
    """Fitted by EM. Where it starts is the usual closed form, which takes every last click for a satisfied one."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> Satisfied:
        return Satisfied(documents, ranks, tower)

    def _begin(self, seen: ChainCounts) -> ChainState:
        tallies = {"attraction": (seen.clicks, seen.above), "satisfaction": (seen.stayed, seen.turns)}
        return ChainState({name: np.stack(tally) for name, tally in tallies.items()}, {})

    @property
    def satisfaction_(self) -> Floats:
        """P(satisfied | clicked), by document."""
        return score_documents(self.tower, self.params_["satisfaction"], self._features)

    @property
    def relevance_values_(self) -> Floats:
        """Attraction × satisfaction."""
        return self.attraction_ * self.satisfaction_

"""The simplified dynamic Bayesian network: a DBN whose user never tires (γ = 1)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.base.model import Floats
from elute.clicks.exact.chain_em import ChainCounts, ChainModel, Rates, Tallies
from elute.clicks.exact.expectation import Expected
from elute.clicks.logspace import LOG_NEVER, log_not_sigmoid, log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.structure.chain import ChainStructure, Chances, LogChances
from elute.clicks.structure.scores import score_documents
from elute.clicks.structure.towers import Params, Tower


@dataclass(frozen=True)
class Satisfied(ChainStructure):
    """Goes on always after no click, with 1 - S after a click (Chapelle and Zhang 2009)."""

    documents: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        attraction, satisfaction = jax.random.split(key)
        return {
            "attraction": self.tower.init(attraction, self.documents, width, 1),
            "satisfaction": self.tower.init(satisfaction, self.documents, width, 1),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = self.tower.logits(params["attraction"], features, pages.doc)
        unsatisfied = log_not_sigmoid(self.tower.logits(params["satisfaction"], features, pages.doc))
        return LogChances(
            log_sigmoid(logit),
            log_not_sigmoid(logit),
            unsatisfied,
            jnp.zeros_like(logit),
            jnp.full_like(logit, LOG_NEVER),
        )

    def chances(self, params: Params, features: jax.Array, pages: DevicePages) -> Chances:
        click, satisfied = (
            jax.nn.sigmoid(self.tower.logits(params[name], features, pages.doc))
            for name in ("attraction", "satisfaction")
        )
        return Chances(click, 1.0 - satisfied, jnp.ones(()))


class SDBN(ChainModel[Satisfied]):
    """Fitted by EM. Where it starts is the usual closed form, which takes every last click for a satisfied one."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> Satisfied:
        return Satisfied(documents, tower)

    def _begin(self, seen: ChainCounts) -> tuple[Tallies, Rates]:
        return {"attraction": (seen.clicks, seen.above), "satisfaction": (seen.stayed, seen.turns)}, {}

    def _maximise(self, rates: Rates, expected: Expected, seen: ChainCounts) -> tuple[Tallies, Rates]:
        satisfied = np.maximum(seen.turns - expected.on, 0.0)
        return {"attraction": (seen.clicks, expected.read), "satisfaction": (satisfied, seen.turns)}, {}

    @property
    def satisfaction_(self) -> Floats:
        """P(satisfied | clicked), by document."""
        return score_documents(self.tower, self.params_["satisfaction"], self._features)

    @property
    def relevance_values_(self) -> Floats:
        """Attraction × satisfaction."""
        return self.attraction_ * self.satisfaction_

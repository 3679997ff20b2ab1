"""The dependent click model: a cascade that may go on after a click, more or less readily by rank."""

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
from elute.clicks.structure.towers import Params, Tower


@dataclass(frozen=True)
class GoesOnByRank(ChainStructure):
    """After a click at rank k the user goes on with λ_k, after none always (Guo et al. 2009)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "continuation": jnp.zeros(self.ranks),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = self.tower.logits(params["attraction"], features, pages.doc)
        on_click = jnp.broadcast_to(log_sigmoid(params["continuation"][: logit.shape[1]]), logit.shape)
        return LogChances(
            log_sigmoid(logit), log_not_sigmoid(logit), on_click, jnp.zeros_like(logit), jnp.full_like(logit, LOG_NEVER)
        )

    def chances(self, params: Params, features: jax.Array, pages: DevicePages) -> Chances:
        click = jax.nn.sigmoid(self.tower.logits(params["attraction"], features, pages.doc))
        on_click = jax.nn.sigmoid(params["continuation"][: click.shape[1]])
        return Chances(click, jnp.broadcast_to(on_click, click.shape), jnp.ones(()))


class DCM(ChainModel[GoesOnByRank]):
    """Fitted by EM. The closed form of Guo et al., which bounds the likelihood from below, is where EM starts."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> GoesOnByRank:
        return GoesOnByRank(documents, ranks, tower)

    def _begin(self, seen: ChainCounts) -> tuple[Tallies, Rates]:
        on = seen.turns_by_rank - seen.stayed_by_rank
        return {"attraction": (seen.clicks, seen.above)}, {"continuation": _continuation_rates(on, seen)}

    def _maximise(self, rates: Rates, expected: Expected, seen: ChainCounts) -> tuple[Tallies, Rates]:
        return {"attraction": (seen.clicks, expected.read)}, {
            "continuation": _continuation_rates(expected.on_by_rank, seen)
        }

    @property
    def continuation_(self) -> Floats:
        """λ by rank."""
        return np.asarray(jax.nn.sigmoid(self.params_["continuation"]), np.float64)


def _continuation_rates(on: Floats, seen: ChainCounts) -> Floats:
    """λ; a half at a rank where nothing was clicked, or below which nothing was shown: there it plays no part."""
    return np.where(seen.turns_by_rank > 0, np.clip(on / np.maximum(seen.turns_by_rank, 1.0), 0.0, 1.0), 0.5)

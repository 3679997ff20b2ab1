"""The dependent click model: a cascade that may go on after a click, more or less readily by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp, sigmoid
from elute.clicks.base.model import Floats
from elute.clicks.exact.chain_em import ChainCounts, ChainModel, ChainState
from elute.clicks.logspace import LOG_NEVER, log_not_sigmoid, log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.structure.attraction import attraction_logits, init_unseen
from elute.clicks.structure.chain import ChainStructure, Chances, Counted, LogChances, Readings
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class GoesOnByRank(ChainStructure):
    """After a click at rank k the user goes on with λ_k, after none always (Guo et al. 2009)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "ranked": init_unseen(self.documents, self.ranks),
            "continuation": jnp.zeros(self.ranks),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = attraction_logits(self.tower, params, features, pages)
        on_click = jnp.broadcast_to(log_sigmoid(params["continuation"][: logit.shape[1]]), logit.shape)
        return LogChances(
            log_sigmoid(logit), log_not_sigmoid(logit), on_click, jnp.zeros_like(logit), jnp.full_like(logit, LOG_NEVER)
        )

    def chances(self, rates: dict[str, jax.Array]) -> Chances:
        click = rates["attraction"]
        on_click = jnp.broadcast_to(rates["continuation"][: click.shape[1]], click.shape)
        return Chances(click, on_click, jnp.ones(()))

    def count(self, rates: dict[str, jax.Array], found: Readings) -> Counted:
        lacking = (0, self.ranks - found.read.shape[1])
        by_rank = tuple(jnp.pad(values.sum(axis=0), lacking) for values in (found.on, found.turn))
        return {"attraction": (found.clicked, found.read), "continuation": (by_rank[0], by_rank[1])}


class DCM(ChainModel[GoesOnByRank]):
    """Fitted by EM. The closed form of Guo et al., which bounds the likelihood from below, is where EM starts."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> GoesOnByRank:
        return GoesOnByRank(documents, ranks, tower)

    def _begin(self, seen: ChainCounts) -> ChainState:
        on, turns = seen.turns_by_rank - seen.stayed_by_rank, seen.turns_by_rank
        return ChainState(
            {"attraction": np.stack((seen.clicks, seen.above))},
            {"continuation": np.where(turns > 0, on / np.maximum(turns, 1.0), 0.5)},
        )

    @property
    def continuation_(self) -> Floats:
        """λ by rank; a half where nothing was clicked, or below which nothing was shown: there it plays no part."""
        return np.asarray(sigmoid(self.params_["continuation"]), np.float64)

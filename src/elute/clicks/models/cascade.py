"""The cascade model: the user reads from the top and leaves at the first click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp
from elute.clicks.base.model import ExactFit, Floats
from elute.clicks.base.ranked_prior import choose_prior, update
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.exact.redrawn import CountedClicks, Redrawable, attract
from elute.clicks.exact.shared import attraction_params
from elute.clicks.exact.tally import mean_log_ranks, one_cell, ranks_of, sum_by_document, tally
from elute.clicks.logspace import LOG_NEVER, log_not_sigmoid, log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.sessions import Sessions, SessionSource
from elute.clicks.structure.attraction import attraction_logits, init_unseen
from elute.clicks.structure.chain import ChainStructure, Chances, Counted, LogChances, Readings
from elute.clicks.structure.towers import Params, Tower
from elute.progress import Progress

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class UntilClick(ChainStructure):
    """P(click) = attraction·Π over the places above of (1 - attraction) (Craswell et al. 2008)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "ranked": init_unseen(self.documents, self.ranks),
        }

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = attraction_logits(self.tower, params, features, pages)
        return LogChances(
            log_sigmoid(logit),
            log_not_sigmoid(logit),
            jnp.full_like(logit, -jnp.inf),
            jnp.zeros_like(logit),
            jnp.full_like(logit, LOG_NEVER),
        )

    def chances(self, rates: dict[str, jax.Array]) -> Chances:
        click = rates["attraction"]
        return Chances(click, jnp.zeros_like(click), jnp.ones(()))

    def count(self, rates: dict[str, jax.Array], found: Readings) -> Counted:
        return {"attraction": (found.clicked, found.read)}


class Cascade(TowerModel[UntilClick], Redrawable):
    """Fitted in closed form: clicks over readings, down to the first click.

    A second click is impossible under this model (`log_likelihood` is -inf), so a session is used down to its first.
    """

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> UntilClick:
        return UntilClick(documents, ranks, tower)

    def _prepare(self, sessions: Sessions) -> Sessions:
        clicked = sessions.clicked
        first = np.where(clicked.any(axis=1), clicked.argmax(axis=1) + 1, sessions.length)
        return Sessions(sessions.query, sessions.doc, sessions.click, first.astype(np.int32))

    def count_clicks(self, sessions: Sessions) -> CountedClicks:
        return CountedClicks(tally(self._accept(sessions), self.documents, 1, one_cell), np.ones(1))

    def _describe(self, attraction: Floats) -> Params:
        return attract(attraction, self.ranks)

    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        cells = tally(source, self.documents, self.ranks, ranks_of)
        read, clicks = (sum_by_document(cells, values) for values in (cells.impressions, cells.clicks))
        z, centre = mean_log_ranks(cells, np.arange(self.ranks))
        prior = choose_prior(self.prior, clicks, read, z)
        return ExactFit(attraction_params(update(clicks, read, prior, z), read > 0, prior, centre, self.ranks))

"""The cascade model: the user reads from the top and leaves at the first click."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.base.model import ExactFit
from elute.clicks.base.prior import pseudo_counts, rate, typical_rate
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.logspace import LOG_NEVER, log_not_sigmoid, log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.sessions import Sessions, SessionSource, iterate_sessions
from elute.clicks.structure.chain import ChainStructure, Chances, LogChances
from elute.clicks.structure.towers import Params, Tower, to_embedding
from elute.progress import Progress


@dataclass(frozen=True)
class UntilClick(ChainStructure):
    """P(click) = attraction·Π over the places above of (1 - attraction) (Craswell et al. 2008)."""

    documents: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {"attraction": self.tower.init(key, self.documents, width, 1)}

    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        logit = self.tower.logits(params["attraction"], features, pages.doc)
        return LogChances(
            log_sigmoid(logit),
            log_not_sigmoid(logit),
            jnp.full_like(logit, -jnp.inf),
            jnp.zeros_like(logit),
            jnp.full_like(logit, LOG_NEVER),
        )

    def chances(self, params: Params, features: jax.Array, pages: DevicePages) -> Chances:
        click = jax.nn.sigmoid(self.tower.logits(params["attraction"], features, pages.doc))
        return Chances(click, jnp.zeros_like(click), jnp.ones(()))


class Cascade(TowerModel[UntilClick]):
    """Fitted in closed form: clicks over readings, down to the first click.

    A second click is impossible under this model (`log_likelihood` is -inf), so a session is used down to its first.
    """

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> UntilClick:
        return UntilClick(documents, tower)

    def _prepare(self, sessions: Sessions) -> Sessions:
        clicked = sessions.clicked
        first = np.where(clicked.any(axis=1), clicked.argmax(axis=1) + 1, sessions.length)
        return Sessions(sessions.query, sessions.doc, sessions.click, first.astype(np.int32))

    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        read, clicks = np.zeros(self.documents), np.zeros(self.documents)
        for part in iterate_sessions(source):
            read += np.bincount(part.doc[part.mask], minlength=self.documents)
            clicks += np.bincount(part.doc[part.clicked], minlength=self.documents)
        added = pseudo_counts(self.prior, clicks, read)
        attraction = to_embedding(rate(clicks, read, added), typical_rate(clicks, read, added))
        return ExactFit({"attraction": attraction})

"""The document's click rate, whatever its rank: the plainest baseline (Section 5.2.1 of the CMIP paper)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from elute.clicks.base.model import ClickModel, Floats
from elute.clicks.base.prior import Prior, pseudo_counts, rate, settle, typical
from elute.clicks.exact.tally import Keys, by_document, tally
from elute.clicks.logspace import log_sigmoid
from elute.clicks.page import Pages
from elute.clicks.sessions import Sessions, Source
from elute.clicks.structure.independent import Independent
from elute.clicks.structure.scores import scores
from elute.clicks.structure.towers import Embedding, Params, embedded
from elute.progress import Progress


@dataclass(frozen=True)
class Rates(Independent):
    """P(click) = rate(document)."""

    documents: int

    def init(self, key: jax.Array, width: int) -> Params:
        return {"rate": Embedding().init(key, self.documents, width, 1)}

    def log_clicks(self, params: Params, features: jax.Array, pages: Pages) -> jax.Array:
        return log_sigmoid(Embedding().logits(params["rate"], features, pages.doc))


class DCTR(ClickModel[Rates]):
    """Posterior mean click rates under a Beta prior; click prediction and relevance are the same."""

    def __init__(self, documents: int, ranks: int, *, prior: Prior = "fitted") -> None:
        super().__init__(Rates(documents), documents, ranks, features=None)
        self.prior = settle(prior)

    def _count(self, source: Source, progress: Progress) -> Params:
        cells = tally(source, self.documents, 1, _one)
        n, c = by_document(cells, cells.impressions), by_document(cells, cells.clicks)
        added = pseudo_counts(self.prior, c, n)
        return {"rate": embedded(rate(c, n, added), typical(c, n, added))}

    def relevance(self) -> Floats:
        """The click rate."""
        return scores(Embedding(), self._fitted()["rate"], self._features)


def _one(sessions: Sessions) -> Keys:
    return np.zeros(sessions.doc.shape, np.int64)

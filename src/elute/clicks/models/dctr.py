"""The document's click rate, whatever its rank: the plainest baseline (Section 5.2.1 of the CMIP paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.base.model import ClickModel, ExactFit, Floats
from elute.clicks.base.prior import Prior, check_prior, pseudo_counts, rate, typical_rate
from elute.clicks.exact.redrawn import CountedClicks, Redrawable
from elute.clicks.exact.tally import one_cell, sum_by_document, tally
from elute.clicks.logspace import log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.sessions import Sessions, SessionSource
from elute.clicks.structure.independent import IndependentStructure
from elute.clicks.structure.scores import score_documents
from elute.clicks.structure.towers import Embedding, Params, to_embedding
from elute.progress import Progress

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class Rates(IndependentStructure):
    """P(click) = rate(document)."""

    documents: int

    def init(self, key: jax.Array, width: int) -> Params:
        return {"rate": Embedding().init(key, self.documents, width, 1)}

    def log_clicks(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        return log_sigmoid(Embedding().logits(params["rate"], features, pages.doc))


class DCTR(ClickModel[Rates], Redrawable):
    """Posterior mean click rates under a Beta prior; click prediction and relevance are the same."""

    def __init__(self, documents: int, ranks: int, *, prior: Prior = "fitted") -> None:
        super().__init__(Rates(documents), documents, ranks, features=None)
        self.prior = check_prior(prior)

    def _fit_on_counts(self, source: SessionSource, progress: Progress) -> ExactFit:
        cells = tally(source, self.documents, 1, one_cell)
        n, c = sum_by_document(cells, cells.impressions), sum_by_document(cells, cells.clicks)
        added = pseudo_counts(self.prior, c, n)
        return ExactFit({"rate": to_embedding(rate(c, n, added), typical_rate(c, n, added))})

    def count_clicks(self, sessions: Sessions) -> CountedClicks:
        return CountedClicks(tally(sessions, self.documents, 1, one_cell), np.ones(1))

    def _describe(self, attraction: Floats) -> Params:
        return {"rate": to_embedding(attraction, 0.5)}

    @property
    def relevance_values_(self) -> Floats:
        """The click rate."""
        return score_documents(Embedding(), self.params_["rate"], self._features)

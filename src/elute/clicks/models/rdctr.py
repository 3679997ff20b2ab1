"""The document's click rate at the rank: a baseline that knows ranks but shares nothing between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp, sigmoid
from elute.clicks.base.model import ClickModel, ExactFit, Floats
from elute.clicks.base.prior import Prior, check_prior, pseudo_counts, rate, typical_rate
from elute.clicks.exact.redrawn import CountedClicks, Redrawable
from elute.clicks.exact.tally import ranks_of, tally
from elute.clicks.logspace import log_sigmoid, to_logits
from elute.clicks.page import DevicePages
from elute.clicks.sessions import Sessions, SessionSource
from elute.clicks.structure.independent import IndependentStructure
from elute.clicks.structure.towers import Params
from elute.progress import Progress

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class RankedRates(IndependentStructure):
    """P(click) = rate(document, rank)."""

    documents: int
    ranks: int

    def init(self, key: jax.Array, width: int) -> Params:
        return {"rate": jnp.zeros((self.documents, self.ranks))}

    def log_clicks(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        doc = jnp.clip(pages.doc, 0, self.documents - 1)
        return log_sigmoid(params["rate"][doc, jnp.arange(doc.shape[1])])


class RDCTR(ClickModel[RankedRates], Redrawable):
    """Posterior mean click rates of (document, rank) under a Beta prior of each rank (CMIP paper, Section 5.2.1).

    A document never shown at a rank has that rank's mean rate there.
    """

    def __init__(self, documents: int, ranks: int, *, prior: Prior = "fitted") -> None:
        super().__init__(RankedRates(documents, ranks), documents, ranks, features=None)
        self.prior = check_prior(prior)

    def _fit_on_counts(self, source: SessionSource, progress: Progress) -> ExactFit:
        cells = tally(source, self.documents, self.ranks, ranks_of)
        doc = np.repeat(np.arange(self.documents), np.diff(cells.offsets))
        logits = np.empty((self.documents, self.ranks), np.float32)
        for rank in range(self.ranks):
            at = cells.cell == rank
            n, c = cells.impressions[at], cells.clicks[at]
            added = pseudo_counts(self.prior, c, n)
            logits[:, rank] = to_logits(typical_rate(c, n, added))
            logits[doc[at], rank] = to_logits(rate(c, n, added))
        return ExactFit({"rate": jnp.asarray(logits)})

    def count_clicks(self, sessions: Sessions) -> CountedClicks:
        """As if documents were clicked more or less at all ranks alike: by how much is what the relevance adds up."""
        return CountedClicks(tally(sessions, self.documents, self.ranks, ranks_of), self._by_rank)

    def _describe(self, attraction: Floats) -> Params:
        return {"rate": jnp.asarray(to_logits(np.outer(attraction, self._by_rank)))}

    @property
    def _by_rank(self) -> Floats:
        """Mean rates, the largest 1."""
        means = np.asarray(sigmoid(self.params_["rate"]), np.float64).mean(axis=0)
        return np.asarray(means / means.max())

    @property
    def relevance_values_(self) -> Floats:
        """Σ over ranks of the document's rate over all documents' mean rate (Section 5.2.1; not a probability)."""
        rates = np.asarray(sigmoid(self.params_["rate"]), np.float64)
        return np.asarray((rates / rates.mean(axis=0)).sum(axis=1))

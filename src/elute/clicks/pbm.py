"""The position-based model: a document is clicked when it is examined, which depends on its rank, and attractive."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from elute.clicks.independent import Independent
from elute.clicks.logspace import log_sigmoid, logits_of
from elute.clicks.model import ClickModel, Floats
from elute.clicks.page import Pages
from elute.clicks.prior import Prior, settle
from elute.clicks.product import fit_product
from elute.clicks.scores import scores
from elute.clicks.sessions import Source
from elute.clicks.tally import ranks_of, tally
from elute.clicks.towers import Embedding, Params, Tower, embedded
from elute.progress import Progress


@dataclass(frozen=True)
class Positions(Independent):
    """P(click) = attraction(document)·examination(rank) (Craswell et al. 2008; Section 5.1.4 of the CMIP paper)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "examination": jnp.zeros(self.ranks),
        }

    def log_clicks(self, params: Params, features: jax.Array, pages: Pages) -> jax.Array:
        attraction = log_sigmoid(self.tower.logits(params["attraction"], features, pages.doc))
        return attraction + log_sigmoid(params["examination"][: pages.doc.shape[1]])


class PBM(ClickModel[Positions]):
    """Fitted on counts of (document, rank), exactly. `prior`: see `elute.clicks.prior`; of attraction."""

    def __init__(
        self,
        documents: int,
        ranks: int,
        *,
        tower: Tower | None = None,
        features: ArrayLike | None = None,
        prior: Prior = "fitted",
    ) -> None:
        super().__init__(Positions(documents, ranks, tower or Embedding()), documents, ranks, features=features)
        self.prior = settle(prior)

    def _count(self, source: Source, progress: Progress) -> Params | None:
        if self.structure.tower.needs_features:
            return None
        cells = tally(source, self.documents, self.ranks, ranks_of)
        found = fit_product(cells, self.ranks, self.prior, progress)
        return {
            "attraction": embedded(found.attraction, found.typical),
            "examination": jnp.asarray(logits_of(found.examination)),
        }

    def examination(self) -> Floats:
        """By rank, the largest 1: only ratios are determined."""
        log_o = np.asarray(log_sigmoid(self._fitted()["examination"]), np.float64)
        return np.asarray(np.exp(log_o - log_o.max()))

    def relevance(self) -> Floats:
        """Attraction at the scale at which the largest examination is 1."""
        largest = float(jax.nn.sigmoid(self._fitted()["examination"]).max())
        return largest * scores(self.structure.tower, self.params_["attraction"], self._features)

"""The position-based model: a document is clicked when it is examined, which depends on its rank, and attractive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp
from elute.clicks.base.model import Floats
from elute.clicks.exact.product_model import ProductModel
from elute.clicks.exact.tally import Keys, PairCounts, ranks_of, tally
from elute.clicks.logspace import log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.sessions import SessionSource
from elute.clicks.structure.attraction import attraction_logits, init_unseen
from elute.clicks.structure.independent import IndependentStructure
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class Positions(IndependentStructure):
    """P(click) = attraction(document)·examination(rank) (Craswell et al. 2008; Section 5.1.4 of the CMIP paper)."""

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "ranked": init_unseen(self.documents, self.ranks),
            "examination": jnp.zeros(self.ranks),
        }

    def log_clicks(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        attraction = log_sigmoid(attraction_logits(self.tower, params, features, pages))
        return attraction + log_sigmoid(params["examination"][: pages.doc.shape[1]])


class PBM(ProductModel[Positions]):
    """Fitted on counts of (document, rank)."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> Positions:
        return Positions(documents, ranks, tower)

    def _count_cells(self, source: SessionSource) -> tuple[PairCounts, Keys]:
        return tally(source, self.documents, self.ranks, ranks_of), np.arange(self.ranks)

    def _name_cell(self, cell: int) -> str:
        return f"at rank {cell + 1}"

    @property
    def examination_(self) -> Floats:
        """By rank, the largest 1: only ratios are determined."""
        return self._examination

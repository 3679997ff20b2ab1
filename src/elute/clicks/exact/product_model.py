"""Models of attraction × examination, fitted exactly on counts: PBM and UBM."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.base.model import ExactFit, Floats
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.exact.product import fit_product
from elute.clicks.exact.tally import PairCounts
from elute.clicks.logspace import log_sigmoid, to_logits
from elute.clicks.sessions import SessionSource
from elute.clicks.structure.base import ClickStructure
from elute.clicks.structure.towers import to_embedding
from elute.progress import Progress

S = TypeVar("S", bound=ClickStructure)


class ProductModel(TowerModel[S]):
    """Subclasses say what the cells are that examination belongs to."""

    @abstractmethod
    def _count_cells(self, source: SessionSource) -> tuple[PairCounts, int]:
        """Counts by (document, cell), and how many cells there are."""

    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        found = fit_product(*self._count_cells(source), self.prior, progress)
        params = {
            "attraction": to_embedding(found.attraction, found.typical),
            "examination": jnp.asarray(to_logits(found.examination)),
        }
        return ExactFit(params, found.rounds, found.converged)

    @property
    def _examination(self) -> Floats:
        """By cell, the largest 1: only ratios are determined."""
        log_o = np.asarray(log_sigmoid(self.params_["examination"]), np.float64)
        return np.asarray(np.exp(log_o - log_o.max()))

    @property
    def relevance_values_(self) -> Floats:
        """Attraction at the scale at which the largest examination is 1."""
        return float(jax.nn.sigmoid(self.params_["examination"]).max()) * self.attraction_

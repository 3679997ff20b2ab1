"""Models of attraction × examination, fitted exactly on counts: PBM and UBM."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.base.model import Floats
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.exact.product import fit_product
from elute.clicks.exact.tally import Cells
from elute.clicks.logspace import log_sigmoid, logits_of
from elute.clicks.sessions import Source
from elute.clicks.structure.base import Structure
from elute.clicks.structure.towers import Params, embedded
from elute.progress import Progress

S = TypeVar("S", bound=Structure)


class ProductModel(TowerModel[S]):
    """Subclasses say what the cells are that examination belongs to."""

    @abstractmethod
    def _cells(self, source: Source) -> tuple[Cells, int]:
        """Counts by (document, cell), and how many cells there are."""

    def _exact(self, source: Source, progress: Progress) -> Params:
        found = fit_product(*self._cells(source), self.prior, progress)
        self.iterations_, self.converged_ = found.rounds, found.converged
        return {
            "attraction": embedded(found.attraction, found.typical),
            "examination": jnp.asarray(logits_of(found.examination)),
        }

    def _examination(self) -> Floats:
        """By cell, the largest 1: only ratios are determined."""
        log_o = np.asarray(log_sigmoid(self._fitted()["examination"]), np.float64)
        return np.asarray(np.exp(log_o - log_o.max()))

    def relevance(self) -> Floats:
        """Attraction at the scale at which the largest examination is 1."""
        return float(jax.nn.sigmoid(self._fitted()["examination"]).max()) * self.attraction()

"""Models of attraction × examination, fitted on counts: PBM and UBM."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import numpy as np

from elute.clicks.backend import jnp, sigmoid
from elute.clicks.base.model import ExactFit, Floats
from elute.clicks.base.ranked_prior import RankedPrior, choose_prior
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.exact.marginal import fit_marginally
from elute.clicks.exact.product import fit_product
from elute.clicks.exact.redrawn import CountedClicks, Redrawable, attract
from elute.clicks.exact.shared import attraction_params
from elute.clicks.exact.tally import Keys, PairCounts, mean_log_ranks, sum_by_document
from elute.clicks.logspace import log_sigmoid, to_logits
from elute.clicks.sessions import Sessions, SessionSource
from elute.clicks.structure.base import ClickStructure
from elute.clicks.structure.towers import Params
from elute.progress import Progress

S = TypeVar("S", bound=ClickStructure)

_PLENTY = 100
"""Impressions of most documents from which on examinations are those of maximum likelihood. It looks within documents
alone; the marginal likelihood also between them, and where a strong ranker hardly moves its documents, what the prior
has wrong about ranks goes into examinations: they were 5 to 15% too high in a world with 850 impressions a document."""

_NEAR = 1e-3
"""How near to 0 or 1 is as good as there."""


class ProductModel(TowerModel[S], Redrawable):
    """By marginal likelihood where documents have a prior (`elute.clicks.exact.marginal`), by maximum likelihood where
    they have none, or plenty of impressions. Subclasses say what the cells are that examination belongs to."""

    @abstractmethod
    def _count_cells(self, source: SessionSource) -> tuple[PairCounts, Keys]:
        """Counts by (document, cell), and the rank, from 0, of every cell."""

    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        cells, rank_of = self._count_cells(source)
        shown = sum_by_document(cells, cells.impressions) > 0
        z, centre = mean_log_ranks(cells, rank_of)
        if self.prior is None:
            found = fit_product(cells, len(rank_of), progress)
            logit = float(to_logits(found.typical))
            fitted, prior = found[0], RankedPrior(logit, 0.0, 0.0)
            o, rounds, converged = found.examination, found.rounds, found.converged
        else:
            given = None if self.prior == "fitted" else choose_prior(self.prior, np.zeros(len(z)), np.zeros(len(z)), z)
            if np.median(sum_by_document(cells, cells.impressions)[shown]) >= _PLENTY:
                o, rounds = fit_product(cells, len(rank_of), progress).examination, 0
            else:
                _, _, o, rounds, _ = fit_marginally(cells, len(rank_of), z, given, progress)
            fitted, prior, o, more, converged = fit_marginally(cells, len(rank_of), z, given, progress, o)
            rounds += more
        params = attraction_params(fitted, shown, prior, centre, self.ranks)
        params["examination"] = jnp.asarray(to_logits(o))
        return ExactFit(params, rounds, converged, {"attraction": prior.to_dict()})

    def count_clicks(self, sessions: Sessions) -> CountedClicks:
        examination = np.asarray(sigmoid(self.params_["examination"]), np.float64)
        return CountedClicks(self._count_cells(sessions)[0], examination)

    def _describe(self, attraction: Floats) -> Params:
        return attract(attraction, self.ranks)

    @property
    def boundary_(self) -> list[str]:
        """Examinations of 0, and those of 1 where more than one is: the largest sets the scale."""
        o = self._examination
        full = np.flatnonzero(o > 1.0 - _NEAR)
        at = np.concatenate((full if len(full) > 1 else full[:0], np.flatnonzero(o < _NEAR * o.mean())))
        return [f"examination {self._name_cell(int(cell))} = {o[cell]:.0f}" for cell in np.sort(at)]

    @abstractmethod
    def _name_cell(self, cell: int) -> str:
        """A cell in words."""

    @property
    def _examination(self) -> Floats:
        """By cell, the largest 1: only ratios are determined."""
        log_o = np.asarray(log_sigmoid(self.params_["examination"]), np.float64)
        return np.asarray(np.exp(log_o - log_o.max()))

    @property
    def relevance_values_(self) -> Floats:
        """Attraction at the scale at which the largest examination is 1."""
        return float(sigmoid(self.params_["examination"]).max()) * self.attraction_

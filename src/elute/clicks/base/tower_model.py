"""What models share whose documents attract clicks as a tower says: an embedding of their ids, or their features."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from numpy.typing import ArrayLike

from elute.clicks.base.model import ClickModel, ExactFit, Floats
from elute.clicks.base.prior import Prior, check_prior
from elute.clicks.sessions import SessionSource
from elute.clicks.structure.base import ClickStructure
from elute.clicks.structure.scores import score_documents
from elute.clicks.structure.towers import Embedding, Tower
from elute.progress import Progress

S = TypeVar("S", bound=ClickStructure)


class TowerModel(ClickModel[S]):
    """`prior`: see `elute.clicks.base.prior`; of every rate that belongs to a document, where the fit is exact. A tower
    over features is fitted by gradients."""

    def __init__(
        self,
        documents: int,
        ranks: int,
        *,
        tower: Tower | None = None,
        features: ArrayLike | None = None,
        prior: Prior = "fitted",
    ) -> None:
        self.tower = tower or Embedding()
        super().__init__(self._build_structure(documents, ranks, self.tower), documents, ranks, features=features)
        self.prior = check_prior(prior)

    @abstractmethod
    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> S:
        """The model's structure."""

    @abstractmethod
    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        """A fit on counts or by EM, with a number of its own for every document."""

    def _fit_on_counts(self, source: SessionSource, progress: Progress) -> ExactFit | None:
        return None if self.tower.needs_features else self._fit_exactly(source, progress)

    @property
    def attraction_(self) -> Floats:
        """P(click | read), by document."""
        return score_documents(self.tower, self.params_["attraction"], self._features)

    @property
    def relevance_values_(self) -> Floats:
        """Attraction; models that know more multiply it in."""
        return self.attraction_

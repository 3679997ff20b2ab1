"""What models share whose documents attract clicks as a tower says: an embedding of their ids, or their features."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from numpy.typing import ArrayLike

from elute.clicks.base.model import ClickModel, Floats
from elute.clicks.base.prior import Prior, settle
from elute.clicks.sessions import Source
from elute.clicks.structure.base import Structure
from elute.clicks.structure.scores import scores
from elute.clicks.structure.towers import Embedding, Params, Tower
from elute.progress import Progress

S = TypeVar("S", bound=Structure)


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
        super().__init__(self._shape(documents, ranks, self.tower), documents, ranks, features=features)
        self.prior = settle(prior)

    @abstractmethod
    def _shape(self, documents: int, ranks: int, tower: Tower) -> S:
        """The model's structure."""

    @abstractmethod
    def _exact(self, source: Source, progress: Progress) -> Params:
        """Parameters from counts or by EM, with a number of its own for every document."""

    def _count(self, source: Source, progress: Progress) -> Params | None:
        return None if self.tower.needs_features else self._exact(source, progress)

    def attraction(self) -> Floats:
        """P(click | read), by document."""
        return scores(self.tower, self._fitted()["attraction"], self._features)

    def relevance(self) -> Floats:
        """Attraction; models that know more multiply it in."""
        return self.attraction()

"""Models that can be fitted again to clicks of their own: an audit asks what noise alone would make of them.

They are fitted to counts, in a fraction of a second. Chains, whose hidden reading takes EM many rounds, are not among
them, nor what is trained by gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from elute.clicks.exact.tally import PairCounts
from elute.clicks.sessions import Sessions
from elute.clicks.structure.attraction import init_unseen
from elute.clicks.structure.towers import Params, to_embedding

Floats = NDArray[np.float64]


class CountedClicks(NamedTuple):
    """Impressions and clicks of documents by cell; the fitted model has P(click) = attraction × examination there."""

    counts: PairCounts
    examination: Floats


class Redrawable(ABC):
    """Beside the verbs of `ClickModel`."""

    params_: Params

    @abstractmethod
    def count_clicks(self, sessions: Sessions) -> CountedClicks:
        """What these clicks say of every document."""

    @abstractmethod
    def _describe(self, attraction: Floats) -> Params:
        """Parameters of documents with these attractions."""

    def with_attraction(self, attraction: Floats) -> Self:
        """The fitted model, were its documents such."""
        other = copy(self)
        other.params_ = self.params_ | self._describe(attraction)
        return other


def attract(attraction: Floats, ranks: int) -> Params:
    """Parameters of documents that were all shown."""
    return {"attraction": to_embedding(attraction, 0.5), "ranked": init_unseen(len(attraction), ranks)}

"""Pairs of item and factor that may be shown: what a budget of impressions can be spent on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Candidates(NamedTuple):
    """Show `item`, known under factor `source`, under factor `target`: at most `most` impressions, which is what the
    traffic of its query allows for the pair. `loss`: expected clicks that users lose per impression."""

    item: Ints
    source: Ints
    target: Ints
    most: Ints
    loss: Floats

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Candidates:
        """These, in this order."""
        return Candidates(self.item[which], self.source[which], self.target[which], self.most[which], self.loss[which])

    def append(self, more: Candidates) -> Candidates:
        """These and more."""
        return Candidates(
            np.concatenate((self.item, more.item)),
            np.concatenate((self.source, more.source)),
            np.concatenate((self.target, more.target)),
            np.concatenate((self.most, more.most)),
            np.concatenate((self.loss, more.loss)),
        )


_NONE = np.empty(0, np.int64)
NO_CANDIDATES = Candidates(_NONE, _NONE, _NONE, _NONE, np.empty(0))

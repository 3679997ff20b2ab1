"""Satisfaction by marginal likelihood: what last clicks say of a document, and what all documents say of its prior.

After a click on x the user goes on with γ(1 - S(x)). A click further down proves it; where the click is a page's last,
nobody knows. With all but S(x) given, P(these clicks) is proportional to

    (1 - S)^on · Π over last clicks of (1 - c·(1 - S)),    c = γ·P(a further click | the place below is read)

so that 1 - S is to (went on, last click) what attraction is to (click, skip) at an examination c, and the integrals of
`elute.clicks.exact.marginal` serve. A prior that was fitted instead to expected numbers of satisfied users would
confirm itself: expectations of what is hidden lie nearer to the prior than the truth does, and round by round documents
become all alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.clicks.base.ranked_prior import RankedPrior
from elute.clicks.exact.marginal import average_documents, fit_prior
from elute.clicks.exact.tally import PairCounts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEVELS = 32
"""Of c; a document's last clicks at one level are taken together."""


class LastClicks(NamedTuple):
    """Pages whose last click has a place below it: the document, and P(a further click | the place below is read)."""

    doc: Ints
    further: Floats


class Endings(NamedTuple):
    """Counts by document and level of c, and c by level. Clicks with another one below have a level of their own."""

    cells: PairCounts
    c: Floats

    @classmethod
    def gather(cls, last: LastClicks, on: Floats, going_on: float) -> Endings:
        """`on`: by document, clicks with another one below. `going_on`: γ."""
        levels = _LEVELS + 1
        level = np.minimum((last.further * _LEVELS).astype(np.int64), _LEVELS - 1)
        keys = np.concatenate((last.doc * levels + level, np.flatnonzero(on) * levels + _LEVELS))
        keys, times = np.unique(keys, return_counts=True)
        doc, cell = keys // levels, keys % levels
        clicks = np.where(cell == _LEVELS, on[doc], 0.0)
        offsets = np.searchsorted(doc, np.arange(len(on) + 1))
        middle = (np.arange(_LEVELS) + 0.5) / _LEVELS
        c = np.minimum(np.append(going_on * middle, 1.0), 1.0 - 1e-6)
        return cls(PairCounts(offsets, cell, np.where(cell == _LEVELS, clicks, times), clicks), c)

    def choose_prior(self, z: Floats, start: RankedPrior) -> RankedPrior:
        """Of S, the likeliest; `start`: where to search from."""
        return _mirror(fit_prior(self.cells, self.c, z, _mirror(start)))

    def average(self, prior: RankedPrior, z: Floats) -> Floats:
        """Posterior means of S by document."""
        return np.asarray(1.0 - average_documents(self.cells, self.c, _mirror(prior), z))


def _mirror(prior: RankedPrior) -> RankedPrior:
    """Of 1 - r, given that of r."""
    return prior._replace(level=-prior.level, slope=-prior.slope)

"""Pages drawn anew from a session click model, and the model fitted to them again.

As `elute.auditing.cmip.calibrated` says: documents get the attraction of their grade, whatever their place; the model
itself reads the pages and clicks; and it is fitted again. So what clicks owe to those above is in the null too.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.auditing.cmip.calibrated import Redraw
from elute.auditing.cmip.population import ClickLaw, SpreadByGrade, Tallies
from elute.clicks.sessions import Sessions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_PAGES = 200_000
"""Beyond, the pages of some of the judged queries are redrawn: there are a hundred fits to make."""
_HIGHEST = 0.999
"""Of attraction."""


@dataclass(frozen=True, eq=False)
class JudgedPages:
    """The pages a model was fitted to, the model, and the judged ones among its documents."""

    pages: Sessions
    model: Any
    """A `ClickModel` that is `Redrawable`."""
    document: Ints
    grade: Floats
    query: Ints
    policy: Floats

    def prepare(self, rng: np.random.Generator) -> Redraw:
        counts, examination = self.model.count_clicks(self.pages)
        cells = Tallies(counts.offsets.astype(np.int64), counts.cell, counts.impressions, counts.clicks)
        law = ClickLaw(examination, np.zeros_like(examination))
        spread = SpreadByGrade.estimate(cells, law, self.document, self.grade, rng)

        def redraw(tilt: Floats, rng: np.random.Generator) -> Floats:
            attraction = spread.draw(rng)
            attraction[self.document] *= tilt
            clicked = self.model.with_attraction(np.clip(attraction, 0.0, _HIGHEST)).redraw(self.pages, rng)
            return np.asarray(copy(self.model).fit(clicked).relevance_values_[self.document])

        return redraw


def choose_pages(pages: Sessions, document: Ints, seed: int) -> tuple[Sessions, NDArray[np.bool_]]:
    """The pages to redraw, and which of the judged documents they show: all, or some queries of those judged."""
    if len(pages) <= MOST_PAGES:
        return pages, np.ones(len(document), np.bool_)
    shows = (np.isin(pages.doc, document) & pages.mask).any(axis=1)
    queries, of_page = np.unique(pages.query[shows], return_inverse=True)
    order = np.random.default_rng((seed, 2)).permutation(len(queries))
    size = np.bincount(of_page, minlength=len(queries))[order]
    kept = order[: max(1, int(np.searchsorted(np.cumsum(size), MOST_PAGES, side="right")))]
    some = pages.take(np.flatnonzero(shows)[np.isin(of_page, kept)])
    return some, np.isin(document, some.doc[some.mask])

"""Validation without grades: clicks of pages that the ranker does not learn from.

The measure is the DCG@10 of held-out clicks, each weighted by its inverse propensity, over the sum of the weights: the
mean of 1 / log2(rank + 1) of what users would click if they examined everything, ranks being those among the documents
of the page. Up to a constant its numerator is an unbiased estimate of the DCG of relevance within pages, if a click is
examination times relevance and the propensities are right. The sum below takes out the scale of the weights, which
differs from moment to moment where propensities are learnt with the ranker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.auditing.ranking_metrics import dcg
from elute.errors import EluteError
from elute.io.features import Features
from elute.training.pages import TrainingPages
from elute.training.weights import Weighing

CUT = 10
_ROWS = 1 << 16
"""Documents scored at a time."""
Floats = NDArray[np.float64]
Score = Callable[[NDArray[np.float32]], NDArray[Any]]


class ClickFigure(NamedTuple):
    """A weighted mean over clicks, and its standard error over queries or pages; None where there is one."""

    estimate: float
    standard_error: float | None

    def to_dict(self) -> dict[str, float | None]:
        se = self.standard_error
        low, high = (None, None) if se is None else (self.estimate - 1.96 * se, self.estimate + 1.96 * se)
        return {"estimate": self.estimate, "se": se, "low": low, "high": high}


class HeldOutClicks(NamedTuple):
    """The held-out pages with a click that weighs something, one after the other."""

    features: NDArray[np.float32]
    """Of all documents of the task."""
    rows: NDArray[np.int64]
    """Of the features: the documents on these pages."""
    offsets: NDArray[np.int64]
    document: NDArray[np.int64]
    """By impression; a place in `rows`."""
    place: NDArray[np.int64]
    """On its page, from 0."""
    gain: Floats
    """Clicks, weighted where weights are known before the ranker is learnt."""
    weighted: bool
    cluster: NDArray[np.int64]
    """By page: its query, where features are by query, else the page."""
    by_query: bool
    pages: int
    """With those without a click."""
    clicks: int
    unweighted: int
    """Clicks left out: the pages to learn from have none under their factors, so that they weigh nothing."""

    @property
    def name(self) -> str:
        """Of the measure."""
        return f"click DCG@{CUT}"

    def compare(self, score: Score, propensities: NDArray[np.float32] | None = None) -> float:
        """The measure of a ranker; `propensities`, by place, weigh clicks where they are learnt with it."""
        return self.compare_scores(self._score(score), propensities)

    def compare_scores(self, scores: Floats, propensities: NDArray[np.float32] | None = None) -> float:
        """The same by the scores of `rows`."""
        gain = self._weigh(propensities)
        return float(dcg(gain, scores[self.document], self.offsets, CUT).by_query.sum() / gain.sum())

    def describe(self, score: Score, propensities: NDArray[np.float32] | None = None) -> dict[str, Any]:
        """The measure with its error, beside that of the order in which the pages were shown."""
        gain = self._weigh(propensities)
        weight = np.add.reduceat(gain, self.offsets[:-1])
        ranked, shown = (
            dcg(gain, by, self.offsets, CUT).by_query for by in (self._score(score)[self.document], -self.place)
        )
        dcgs = self._average(ranked, weight), self._average(shown, weight)
        more = self._average(ranked - shown, weight)
        return {
            "pages": self.pages,
            "clicks": self.clicks,
            "unweighted_clicks": self.unweighted,
            "over": "queries" if self.by_query else "pages",
            f"dcg@{CUT}": dcgs[0].to_dict(),
            "as_shown": dcgs[1].to_dict(),
            "against_shown": more.to_dict(),
            "sentence": self._write_sentence(*dcgs, more),
        }

    def _score(self, score: Score) -> Floats:
        parts = np.split(self.rows, range(_ROWS, len(self.rows), _ROWS))
        return np.concatenate([np.asarray(score(self.features[rows]), np.float64) for rows in parts])

    def _weigh(self, propensities: NDArray[np.float32] | None) -> Floats:
        if self.weighted or propensities is None:
            return self.gain
        inverse = np.zeros(max(len(propensities), int(self.place.max()) + 1))
        inverse[: len(propensities)] = 1.0 / np.maximum(propensities, np.finfo(np.float32).tiny)
        return np.asarray(self.gain * inverse[self.place])

    def _average(self, total: Floats, weight: Floats) -> ClickFigure:
        """Σ total / Σ weight, and its error to first order, by cluster."""
        ratio = float(total.sum() / weight.sum())
        off = np.bincount(self.cluster, total - ratio * weight)
        n = len(np.unique(self.cluster))
        if n < 2:
            return ClickFigure(ratio, None)
        return ClickFigure(ratio, float(np.sqrt((off**2).sum() * n / (n - 1)) / weight.sum()))

    def _write_sentence(self, ranked: ClickFigure, shown: ClickFigure, more: ClickFigure) -> str:
        se = more.standard_error
        told = "beside" if se is None or abs(more.estimate) < 1.96 * se else ("above" if more.estimate > 0 else "BELOW")
        spread = "" if ranked.standard_error is None else f" ± {2 * ranked.standard_error:.4f}"
        same = " (cannot be told apart)" if told == "beside" else ""
        naive = self.weighted and bool(np.isin(self.gain, (0.0, 1.0)).all())
        unit = "1 each, which favours what was shown high" if naive else "by inverse propensity"
        lost = (
            f" ({self.unweighted:,} left out: the pages to learn from have no click under their factors)"
            if self.unweighted
            else ""
        )
        return (
            f"{self.clicks:,} clicks on {self.pages:,} held-out pages{lost}, weighted {unit}: DCG@{CUT} "
            f"{ranked.estimate:.4f}{spread}, {told} the order shown, {shown.estimate:.4f}{same}"
        )


def hold_out(
    pages: TrainingPages, factors: Any, features: Features, weighing: Weighing | None, positions: int
) -> HeldOutClicks:
    """Pages of the held-out part, whose factors are `factors`; `positions`: of the longest page to learn from."""
    clicked = np.asarray(pages.clicks, np.float64)
    shown = pages.documents >= 0
    if weighing is None:
        gain = np.where(np.arange(clicked.shape[1]) < positions, clicked, 0.0)
    else:
        names = factors.column_names
        known = match(id_columns(factors, names), id_columns(weighing.factors, names))
        weight = np.where(known >= 0, weighing.weight[known], 0.0)
        gain = clicked * weight[pages.factor]
    some = gain.sum(axis=1) > 0
    if not some.any():
        raise EluteError("no held-out page has a click to validate by; raise `holdout=`, or collect more pages")
    rows, document = np.unique(pages.documents[some][shown[some]], return_inverse=True)
    place = np.broadcast_to(np.arange(clicked.shape[1]), clicked.shape)[some][shown[some]]
    by_query = features.key.num_columns > 1
    cluster = np.arange(int(some.sum()))
    if by_query:
        cluster = features.key[0].combine_chunks().dictionary_encode().indices.to_numpy()[pages.documents[some, 0]]
    return HeldOutClicks(
        features.values,
        rows.astype(np.int64),
        np.concatenate(([0], np.cumsum(shown[some].sum(axis=1)))),
        document.astype(np.int64),
        place.astype(np.int64),
        gain[some][shown[some]],
        weighing is not None,
        np.unique(cluster, return_inverse=True)[1].astype(np.int64),
        by_query,
        len(clicked),
        int(clicked.sum()),
        int(clicked[gain == 0].sum()),
    )

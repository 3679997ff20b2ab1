"""How well click probabilities fit held-out pages, with intervals that know that the pages of a query are alike.

Perplexity (Eq. 2 and 3 of the CMIP paper) is a mean over ranks of 2^(bits/impressions), a smooth function of sums over
queries; so is the log-likelihood of a page. To first order such a figure moves with every query by its influence,

    of perplexity:  Σ_k ln 2·PPL_k·(bits_qk - mean_k·n_qk)/n_k / ranks,     of a mean:  (sum_q - mean·n_q)/n,

and the squares of these add up to its variance (clusters by query; Student's t with queries - 1 degrees of freedom).
Figures of two models on the same pages are compared by the differences of their influences: paired by query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

_LEAST = 1e-12
"""A probability nearer to 0 or 1 than this is not taken at its word."""


class HeldOutFigure(NamedTuple):
    """An estimate and, by query, its influence on it."""

    estimate: float
    influence: Floats

    @property
    def half_width(self) -> float:
        """Of the 95% interval; NaN with fewer than two queries."""
        return _spread(self.influence) * _quantile(len(self.influence))

    def to_dict(self) -> dict[str, float | None]:
        """`estimate`, `low` and `high`; null where there is no number."""
        ends = (self.estimate, self.estimate - self.half_width, self.estimate + self.half_width)
        names = ("estimate", "low", "high")
        return {name: float(end) if np.isfinite(end) else None for name, end in zip(names, ends, strict=True)}


class PairedDifference(NamedTuple):
    """Of one figure from another on the same pages: with its 95% interval, and the p-value of no difference."""

    difference: float
    low: float
    high: float
    p_value: float

    def to_dict(self) -> dict[str, float | None]:
        """null where there is no number."""
        return {name: float(value) if np.isfinite(value) else None for name, value in self._asdict().items()}


class PageScores(NamedTuple):
    """Of one model on some pages: perplexity of each click alone and given the clicks above, log-likelihood of a
    page."""

    perplexity: HeldOutFigure
    conditional_perplexity: HeldOutFigure
    page_log_likelihood: HeldOutFigure | None

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return {name: None if one is None else one.to_dict() for name, one in self._asdict().items()}


def measure_perplexity(bits: Floats, weights: Floats, rank: Codes, query: Codes, queries: int) -> HeldOutFigure:
    """`bits` lost on impressions (or cells of `weights` of them), at these ranks from 0, of these queries."""
    ranks = int(rank.max(initial=0)) + 1
    key = query.astype(np.int64) * ranks + rank
    lost, shown = (np.bincount(key, x, queries * ranks).reshape(queries, ranks) for x in (bits, weights))
    seen = shown.sum(axis=0) > 0
    lost, shown = lost[:, seen], shown[:, seen]
    total = shown.sum(axis=0)
    mean = lost.sum(axis=0) / total
    at_rank = np.exp2(mean)
    influence = ((lost - mean * shown) / total * at_rank * np.log(2.0)).mean(axis=1)
    return HeldOutFigure(float(at_rank.mean()), influence)


def measure_mean(values: Floats, query: Codes, queries: int) -> HeldOutFigure:
    """Of values by page."""
    mean = float(values.mean())
    sums, pages = np.bincount(query, values, queries), np.bincount(query, minlength=queries)
    return HeldOutFigure(mean, (sums - mean * pages) / max(len(values), 1))


def lose_bits(probability: Floats, clicked: NDArray[Any]) -> Floats:
    """-log2 P(what happened)."""
    p = np.clip(probability, _LEAST, 1.0 - _LEAST)
    return -np.where(clicked, np.log2(p), np.log2(1.0 - p))


def compare(one: HeldOutFigure, other: HeldOutFigure) -> PairedDifference:
    """`one` less `other`, of the same queries."""
    difference, each = one.estimate - other.estimate, one.influence - other.influence
    error, queries = _spread(each), len(each)
    half = error * _quantile(queries)
    sure = 0.0 if difference else 1.0
    p = 2.0 * float(stdtr(queries - 1, -abs(difference) / error)) if error > 0 else sure
    return PairedDifference(difference, difference - half, difference + half, p if queries > 1 else float("nan"))


def _spread(influence: Floats) -> float:
    n = len(influence)
    return float(np.sqrt((influence**2).sum() * n / (n - 1))) if n > 1 else float("nan")


def _quantile(queries: int) -> float:
    return float(stdtrit(queries - 1, 0.975)) if queries > 1 else float("nan")

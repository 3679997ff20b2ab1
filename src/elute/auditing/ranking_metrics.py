"""Ranking metrics over ragged lists: nDCG, expected reciprocal rank, reciprocal rank.

Lists are flat arrays: `offsets[q]:offsets[q + 1]` are the documents of query q. Scores tie more often than one would
like (a constant policy ties them all), so what ties mean is a setting: "average" takes the exact expectation over all
orders of tied documents, "stable" leaves them in the order given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]
Ties = Literal["average", "stable"]
Without = Literal["zero", "one", "skip"]


class Values(NamedTuple):
    """A metric by query, and its mean over the queries that count; NaN marks a query that does not."""

    by_query: Floats
    mean: float


def ndcg(
    grades: ArrayLike,
    scores: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    ties: Ties = "average",
    without: Without = "zero",
) -> Values:
    """DCG@k over that of the ideal order of the same list (Eq. 4 of the CMIP paper).

    Gain 2^grade - 1, discount 1 / log2(rank + 1). `without`: what a query without a relevant document counts.
    """
    if without not in ("zero", "one", "skip"):
        raise EluteError(f"no rule '{without}' for queries without relevant documents; there are: zero, one, skip")
    grade, score, offset = _check_lists(grades, scores, offsets, k, ties)
    gain = np.exp2(grade) - 1
    discount = np.where(_ranks(offset) <= (k or np.inf), 1 / np.log2(_ranks(offset) + 1), 0.0)
    found, ideal = np.zeros(len(offset) - 1), np.zeros(len(offset) - 1)
    _apply_to_lists(_sum_discounted, gain, score, offset, ties, found, discount)
    _apply_to_lists(_sum_discounted, gain, gain, offset, ties, ideal, discount)
    empty = {"zero": 0.0, "one": 1.0, "skip": np.nan}[without]
    relevant = ideal > 0
    return _average(np.where(relevant, found / np.where(relevant, ideal, 1.0), empty))


def dcg(gains: ArrayLike, scores: ArrayLike, offsets: ArrayLike, k: int | None = None) -> Values:
    """Σ gain / log2(rank + 1) over the first k of each list; of tied documents, the mean over their orders."""
    gain, score, offset = _check_lists(gains, scores, offsets, k, "average")
    discount = np.where(_ranks(offset) <= (k or np.inf), 1 / np.log2(_ranks(offset) + 1), 0.0)
    found = np.zeros(len(offset) - 1)
    _apply_to_lists(_sum_discounted, gain, score, offset, "average", found, discount)
    return _average(found)


def err(
    grades: ArrayLike,
    scores: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    highest: float = 4,
    ties: Ties = "average",
) -> Values:
    """Expected reciprocal rank (Chapelle et al. 2009): 1 / rank where a user who reads downwards is satisfied.

    A document of grade g satisfies with probability (2^g - 1) / 2^highest.
    """
    grade, score, offset = _check_lists(grades, scores, offsets, k, ties)
    if grade.max(initial=0.0) > highest:
        raise EluteError(f"a grade of {grade.max():g} is above the highest one, {highest:g}; pass highest=")
    satisfied = (np.exp2(grade) - 1) / np.exp2(highest)
    out = np.zeros(len(offset) - 1)
    _apply_to_lists(_sum_cascade, satisfied, score, offset, ties, out, _reciprocals(offset, k))
    return _average(out)


def mrr(
    grades: ArrayLike,
    scores: ArrayLike,
    offsets: ArrayLike,
    k: int | None = None,
    *,
    relevant: float = 1,
    ties: Ties = "average",
) -> Values:
    """1 / rank of the first document with a grade of at least `relevant`; 0 where there is none in the first k."""
    grade, score, offset = _check_lists(grades, scores, offsets, k, ties)
    out = np.zeros(len(offset) - 1)
    # A document that satisfies for certain or not at all: the first relevant one ends the reading.
    _apply_to_lists(
        _sum_cascade, (grade >= relevant).astype(np.float64), score, offset, ties, out, _reciprocals(offset, k)
    )
    return _average(out)


def _ranks(offset: Offsets) -> Floats:
    return np.arange(1.0, np.diff(offset).max(initial=0) + 1)


def _reciprocals(offset: Offsets, k: int | None) -> Floats:
    return np.where(_ranks(offset) <= (k or np.inf), 1 / _ranks(offset), 0.0)


def _average(by_query: Floats) -> Values:
    counted = by_query[~np.isnan(by_query)]
    return Values(by_query, float(counted.mean()) if len(counted) else float("nan"))


def _check_lists(
    grades: ArrayLike, scores: ArrayLike, offsets: ArrayLike, k: int | None, ties: Ties
) -> tuple[Floats, Floats, Offsets]:
    """The three arrays, checked."""
    grade, score = np.asarray(grades, np.float64), np.asarray(scores, np.float64)
    offset = np.asarray(offsets, np.int64)
    if grade.ndim != 1 or grade.shape != score.shape:
        raise EluteError(f"grades and scores must be flat and equally long; they are {grade.shape} and {score.shape}")
    if (
        offset.ndim != 1
        or len(offset) == 0
        or offset[0] != 0
        or offset[-1] != len(grade)
        or (np.diff(offset) < 0).any()
    ):
        raise EluteError(f"offsets must rise from 0 to the number of documents, {len(grade):,}")
    if np.isnan(score).any():
        raise EluteError(f"{np.isnan(score).sum():,} scores are NaN; score every document or leave it out")
    if not ((grade >= 0) & np.isfinite(grade)).all():
        raise EluteError("grades must be finite and at least 0; leave documents without a grade out")
    if k is not None and k < 1:
        raise EluteError(f"k must be at least 1; it is {k}")
    if ties not in ("average", "stable"):
        raise EluteError(f"no rule '{ties}' for ties; there are: average, stable")
    return grade, score, offset


def _apply_to_lists(
    metric: Callable[..., Any], value: Floats, score: Floats, offset: Offsets, ties: Ties, out: Floats, weight: Floats
) -> None:
    """Sort every list by score, the highest first and ties as given, and let `metric` fill `out`."""
    query = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    order = np.lexsort((-score, query))
    metric(value[order], score[order], offset, ties == "average", weight, out)


@jit
def _sum_discounted(gain: Floats, score: Floats, offset: Offsets, average: bool, weight: Floats, out: Floats) -> None:
    """Σ gain · weight by rank; tied documents share the mean of their gains."""
    for query in range(out.shape[0]):
        first, last = offset[query], offset[query + 1]
        start = first
        while start < last:
            end = start + 1
            while average and end < last and score[end] == score[start]:
                end += 1
            gains = 0.0
            weights = 0.0
            for i in range(start, end):
                gains += gain[i]
                weights += weight[i - first]
            out[query] += gains / (end - start) * weights
            start = end


@jit
def _sum_cascade(stop: Floats, score: Floats, offset: Offsets, average: bool, weight: Floats, out: Floats) -> None:
    """Σ weight(rank) · P(stops there), for a reader who goes downwards and stops at a document with chance `stop`.

    Over a random order of m tied documents, the reader passes the first j with the chance e_j / C(m, j), where e_j
    is the elementary symmetric polynomial of the chances to pass one; `pass_` holds these means, built one document
    at a time: mean_j ← ((n - j) mean_j + j · pass · mean_{j-1}) / n.
    """
    pass_ = np.empty(weight.shape[0] + 1)
    for query in range(out.shape[0]):
        first, last = offset[query], offset[query + 1]
        reach = 1.0
        start = first
        while start < last:
            end = start + 1
            while average and end < last and score[end] == score[start]:
                end += 1
            size = end - start
            pass_[0] = 1.0
            for n in range(1, size + 1):
                go = 1.0 - stop[start + n - 1]
                pass_[n] = 0.0
                for j in range(n, 0, -1):
                    pass_[j] = ((n - j) * pass_[j] + j * go * pass_[j - 1]) / n
            for j in range(size):
                out[query] += weight[start + j - first] * reach * (pass_[j] - pass_[j + 1])
            reach *= pass_[size]
            start = end

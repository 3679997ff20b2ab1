"""How well a ranker orders graded documents: nDCG and ERR at 1, 3, 5 and 10 (UPE paper, 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import err, ndcg
from elute.ranking.data import RankingData

CUTS = (1, 3, 5, 10)
Score = Callable[[NDArray[np.float32]], NDArray[Any]]


class Quality(NamedTuple):
    """By set: `ndcg@1`, …, `err@10`; and how far such means of other queries of the kind would scatter."""

    mean: dict[str, dict[str, float]]
    standard_error: dict[str, dict[str, float | None]]
    """Over queries; None for a set of one."""


def measure_quality(score: Score, judged: Mapping[str, RankingData]) -> Quality:
    """Means over queries, one without a relevant document counting 0.

    ERR is by the highest grade of all these sets together: one of them alone may lack it."""
    highest = _find_highest(judged)
    found = Quality({}, {})
    for name, data in judged.items():
        values = _measure_lists(data, score(data.features), highest)
        found.mean[name], found.standard_error[name] = _average(values)
    return found


def compare_with_log(
    score: Score, judged: Mapping[str, RankingData], logged: Mapping[str, NDArray[np.float64]]
) -> dict[str, dict[str, Any]]:
    """By set: the same of the order in which the log shows these documents, and how much more the ranker has, over the
    queries that the log shows. `logged`: mean positions; documents that were never shown come last, in any order."""
    highest = _find_highest(judged)
    out: dict[str, dict[str, Any]] = {}
    for name, position in logged.items():
        data = judged[name]
        seen = np.isfinite(position)
        of_query = np.bincount(data.query_of[seen], minlength=data.n_queries) > 0
        rows = of_query[data.query_of]
        fields: dict[str, Any] = {"queries": int(of_query.sum()), "of_queries": data.n_queries}
        if rows.any():
            some = data.keep(rows)
            shown = _measure_lists(some, -position[rows], highest)
            ranked = _measure_lists(some, score(some.features), highest)
            more = {metric: ranked[metric] - shown[metric] for metric in ranked}
            for what, values in (("logged", shown), ("ranker_less_logged", more)):
                fields[what], fields[f"{what}_se"] = _average(values)
        out[name] = fields
    return out


def compare_with_naive(score: Score, naive: Score, judged: Mapping[str, RankingData]) -> dict[str, dict[str, Any]]:
    """By set: the same of the ranker that takes clicks as they are, and how much more the other has, query by query."""
    highest = _find_highest(judged)
    out: dict[str, dict[str, Any]] = {}
    for name, data in judged.items():
        clicked = _measure_lists(data, naive(data.features), highest)
        ranked = _measure_lists(data, score(data.features), highest)
        more = {metric: ranked[metric] - clicked[metric] for metric in ranked}
        out[name] = {}
        for what, values in (("naive", clicked), ("ranker_less_naive", more)):
            out[name][what], out[name][f"{what}_se"] = _average(values)
    return out


def _find_highest(judged: Mapping[str, RankingData]) -> int:
    return max((int(data.grades.max()) for data in judged.values()), default=0)


def _measure_lists(data: RankingData, scores: NDArray[Any], highest: int) -> dict[str, NDArray[np.float64]]:
    """By metric and query."""
    lists = (data.grades, scores, data.offsets)
    values = {f"ndcg@{k}": ndcg(*lists, k) for k in CUTS} | {f"err@{k}": err(*lists, k, highest=highest) for k in CUTS}
    return {metric: value.by_query for metric, value in values.items()}


def _average(values: dict[str, NDArray[np.float64]]) -> tuple[dict[str, float], dict[str, float | None]]:
    means = {metric: float(by_query.mean()) for metric, by_query in values.items()}
    return means, {metric: _find_error(by_query) for metric, by_query in values.items()}


def _find_error(by_query: NDArray[np.float64]) -> float | None:
    n = len(by_query)
    return float(by_query.std(ddof=1) / np.sqrt(n)) if n > 1 else None

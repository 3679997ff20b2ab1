"""How well a ranker orders graded documents: nDCG and ERR at 1, 3, 5 and 10 (UPE paper, 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import err, ndcg
from elute.ranking.data import RankingData

CUTS = (1, 3, 5, 10)


class Quality(NamedTuple):
    """By set: `ndcg@1`, …, `err@10`; and how far such means of other queries of the kind would scatter."""

    mean: dict[str, dict[str, float]]
    standard_error: dict[str, dict[str, float | None]]
    """Over queries; None for a set of one."""


def measure_quality(score: Callable[[NDArray[np.float32]], NDArray[Any]], judged: Mapping[str, RankingData]) -> Quality:
    """Means over queries, one without a relevant document counting 0.

    ERR is by the highest grade of all these sets together: one of them alone may lack it."""
    highest = max((int(data.grades.max()) for data in judged.values()), default=0)
    found = Quality({}, {})
    for name, data in judged.items():
        lists = (data.grades, score(data.features), data.offsets)
        values = {f"ndcg@{k}": ndcg(*lists, k) for k in CUTS}
        values |= {f"err@{k}": err(*lists, k, highest=highest) for k in CUTS}
        found.mean[name] = {metric: value.mean for metric, value in values.items()}
        found.standard_error[name] = {metric: _find_error(value.by_query) for metric, value in values.items()}
    return found


def _find_error(by_query: NDArray[np.float64]) -> float | None:
    n = len(by_query)
    return float(by_query.std(ddof=1) / np.sqrt(n)) if n > 1 else None

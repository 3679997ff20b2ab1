"""How well a ranker orders graded documents: nDCG and ERR at 1, 3, 5 and 10 (UPE paper, 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import err, ndcg
from elute.ranking.data import RankingData

CUTS = (1, 3, 5, 10)


def measure_quality(
    score: Callable[[NDArray[np.float32]], NDArray[Any]], judged: Mapping[str, RankingData]
) -> dict[str, dict[str, float]]:
    """By set: `ndcg@1`, …, `err@10`; means over queries, one without a relevant document counting 0.

    ERR is by the highest grade of all these sets together: one of them alone may lack it."""
    highest = max((int(data.grades.max()) for data in judged.values()), default=0)
    found = {}
    for name, data in judged.items():
        lists = (data.grades, score(data.features), data.offsets)
        found[name] = {f"ndcg@{k}": ndcg(*lists, k).mean for k in CUTS}
        found[name] |= {f"err@{k}": err(*lists, k, highest=highest).mean for k in CUTS}
    return found

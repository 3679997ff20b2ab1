"""How well a ranker orders graded documents: nDCG and ERR at 1, 3, 5 and 10 (UPE paper, 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import err, ndcg
from elute.ranking.data import RankingData

CUTS = (1, 3, 5, 10)
_HIGHEST = 4
"""The highest grade of the usual sets: a lower one may be missing from a sample."""


def measure_quality(score: Callable[[NDArray[np.float32]], NDArray[Any]], data: RankingData) -> dict[str, float]:
    """`ndcg@1`, …, `err@10`; means over queries, one without a relevant document counting 0."""
    scores = score(data.features)
    highest = max(_HIGHEST, int(data.grades.max()))
    found = {f"ndcg@{k}": ndcg(data.grades, scores, data.offsets, k).mean for k in CUTS}
    return found | {f"err@{k}": err(data.grades, scores, data.offsets, k, highest=highest).mean for k in CUTS}

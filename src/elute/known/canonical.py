"""Numbers for items and queries that do not hang on where a log was counted.

Engines hand over items in orders of their own. What is drawn at random would be drawn for others, and an error from
few draws would differ with the engine. So items are numbered by what was counted of them: by a hash of their cells.
Items with equal cells can be taken for each other. Queries are numbered by the sum of their items' hashes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.canonical import ADD, Hashes, mix
from elute.estimate.solve.problem import Codes
from elute.kernels.jit import jit


def rank_queries(of_item: Hashes, item: Codes, query: Codes, queries: int) -> Codes:
    """By query: its number. `item`, `query`: which was shown for which."""
    return _invert(np.argsort(_sum_hashes(of_item, item, query, queries), kind="stable"))


def rank_items(of_item: Hashes) -> Codes:
    """By item: its number."""
    return _invert(np.argsort(of_item, kind="stable"))


def _invert(order: NDArray[np.int64]) -> Codes:
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


@jit
def _sum_hashes(of_item: Hashes, item: Codes, query: Codes, queries: int) -> Hashes:
    out = np.zeros(queries, np.uint64)
    for at in range(item.shape[0]):
        out[query[at]] += mix(ADD, of_item[item[at]])
    return out

"""Rankings by sorting: the same for every session of a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit


def order_documents(scores: NDArray[np.float64], offsets: NDArray[np.int64], seed: int) -> NDArray[np.int32]:
    """Rows by falling score within each query. Equal scores come in a random order fixed by `seed`: the order of the
    file may follow the grades, and must not leak into a ranking."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    ties = np.random.default_rng(seed).random(len(scores))
    return np.lexsort((ties, -scores, query)).astype(np.int32)


def compute_ranks(order: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The rank of every document, from 1."""
    out = np.empty(len(order))
    out[order] = np.arange(1, len(order) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    return out


@jit
def fill(
    offsets: NDArray[np.int64], order: NDArray[np.int32], query: NDArray[np.integer], rows: NDArray[np.int32]
) -> None:
    """The first of each session's query into `rows`, then −1."""
    for session in range(rows.shape[0]):
        start = offsets[query[session]]
        length = min(offsets[query[session] + 1] - start, rows.shape[1])
        for place in range(length):
            rows[session, place] = order[start + place]
        rows[session, length:] = -1

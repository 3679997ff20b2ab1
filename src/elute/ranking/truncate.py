"""Fewer documents for each query: an explicit step before simulated pages, which show about ten.

numpy only. The documents kept stay in their order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.ranking.data import RankingData


def keep_top(data: RankingData, scores: NDArray[np.float64], k: int) -> RankingData:
    """The `k` documents of each query with the highest scores (the earlier row among equals); all, where there are
    fewer."""
    _check(k)
    if scores.shape != (data.n_documents,):
        raise EluteError(f"{data.n_documents} documents, but scores of shape {scores.shape}; give one score each")
    order = np.lexsort((-scores, data.query_of))
    place = np.arange(data.n_documents) - data.offsets[data.query_of]
    kept = np.zeros(data.n_documents, np.bool_)
    kept[order[place < k]] = True
    return data.keep(kept)


def keep_stratified(data: RankingData, k: int, seed: int) -> RankingData:
    """`k` documents of each query, grades in about the proportions they have there (Section 5.1.2 of the CMIP paper).

    A grade with n of the query's N documents gets k·n/N places: the whole part for certain, the places left over by
    largest remainder, equal remainders in random order. Within a grade documents are drawn at random. Queries with
    fewer than `k` documents are dropped, as in the paper.
    """
    _check(k)
    rng = np.random.default_rng(seed)
    kept = np.zeros(data.n_documents, np.bool_)
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end - start < k:
            continue
        grades, stratum, counts = np.unique(data.grades[start:end], return_inverse=True, return_counts=True)
        whole, remainder = np.divmod(k * counts, end - start)
        ties = rng.permutation(len(grades))
        left = np.lexsort((ties, -remainder))[: k - whole.sum()]
        whole[left] += 1
        order = np.lexsort((rng.random(end - start), stratum))
        place = np.arange(end - start) - np.repeat(np.cumsum(counts) - counts, counts)
        kept[start + order[place < whole[stratum[order]]]] = True
    return data.keep(kept)


def _check(k: int) -> None:
    if k < 1:
        raise EluteError(f"cannot keep {k} documents for each query; pass k of 1 or more")

"""UBM by the plain EM of the literature, with one pseudo-click and one pseudo-skip on every attraction and examination:
what a sparse fit must not be worse than. Nothing of elute is used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def last_clicks(clicked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rank, from 1, of the last click above each place; 0 where there is none."""
    rank = np.arange(1, clicked.shape[1] + 1)
    last = np.maximum.accumulate(np.where(clicked, rank, 0), axis=1)
    return np.concatenate((np.zeros((len(clicked), 1), np.int64), last[:, :-1]), axis=1)


def fit_em(
    doc: NDArray[np.integer], clicked: NDArray[np.bool_], documents: int, rounds: int = 50
) -> tuple[Floats, Floats]:
    """Attraction by document, and examination by (rank, rank of the last click)."""
    ranks = doc.shape[1]
    cell = np.arange(ranks) * (ranks + 1) + last_clicks(clicked)
    d, e, c = doc.ravel(), cell.ravel(), clicked.ravel()
    amount = ranks * (ranks + 1)
    attraction, examination = np.full(documents, 0.5), np.full(amount, 0.5)
    of_document, of_cell = np.bincount(d, minlength=documents), np.bincount(e, minlength=amount)
    for _ in range(rounds):
        a, o = attraction[d], examination[e]
        attracted = np.where(c, 1.0, a * (1.0 - o) / (1.0 - a * o))
        examined = np.where(c, 1.0, o * (1.0 - a) / (1.0 - a * o))
        attraction = (np.bincount(d, attracted, documents) + 1.0) / (of_document + 2.0)
        examination = (np.bincount(e, examined, amount) + 1.0) / (of_cell + 2.0)
    return attraction, examination.reshape(ranks, ranks + 1)

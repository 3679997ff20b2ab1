"""Every ranking equally likely, drawn afresh for each session."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.ranking.data import RankingData
from elute.simulation.policies.base import Floats, Policy, Rankings, allocate_pages


class Uniform(Policy):
    """A fresh random ranking for each session.

    The CMIP paper's Uniform gives every document the same score: at a temperature above 0 the same as this, at 0 (its
    test logs) one fixed random order a query, which is `Scored(np.zeros(n))` here.
    """

    def __init__(self) -> None:
        super().__init__(temperature=1.0)

    def scores(self, data: RankingData) -> Floats:
        return np.zeros(data.n_documents)

    def sampler(self, data: RankingData) -> _Shuffle:
        return _Shuffle(data)

    def expected_ranks(self, data: RankingData) -> Floats:
        length = np.diff(data.offsets)
        return np.repeat((length + 1) / 2, length)


class _Shuffle:
    def __init__(self, data: RankingData) -> None:
        self._data = data

    def sample(self, query: NDArray[np.integer], width: int, rng: np.random.Generator) -> Rankings:
        rows, length = allocate_pages(self._data, query, width)
        _fill(self._data.offsets, query, rng, rows, np.arange(np.diff(self._data.offsets).max(initial=0)))
        return Rankings(rows, length)


@jit
def _fill(
    offsets: NDArray[np.int64],
    query: NDArray[np.integer],
    rng: np.random.Generator,
    rows: NDArray[np.int32],
    cards: NDArray[np.int64],
) -> None:
    """Fisher and Yates' shuffle, stopped at the page's end. The exchanges are undone in reverse, so that `cards` is
    0, 1, 2, … again for the next session without being written anew."""
    swaps = np.empty(rows.shape[1], np.int64)
    for session in range(rows.shape[0]):
        start = offsets[query[session]]
        n = offsets[query[session] + 1] - start
        length = min(n, rows.shape[1])
        for place in range(length):
            other = place + np.int64(rng.random() * (n - place))
            cards[place], cards[other] = cards[other], cards[place]
            swaps[place] = other
            rows[session, place] = start + cards[place]
        for place in range(length - 1, -1, -1):
            other = swaps[place]
            cards[place], cards[other] = cards[other], cards[place]
        rows[session, length:] = -1

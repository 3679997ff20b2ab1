"""What every logging policy does: score documents, draw rankings for sessions, say the rank to expect.

A policy is a way to score and a temperature: scores become rankings by the Plackett–Luce model, as in Section 5.1.3 of
the CMIP paper; at temperature 0 by sorting. `sampler` prepares a policy for some data once; draw from it as often as
needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.options.kinds import Number
from elute.options.takes import declares
from elute.ranking.data import RankingData
from elute.simulation.policies import fixed, plackett_luce

Floats = NDArray[np.float64]


class Rankings(NamedTuple):
    """Pages of sessions."""

    rows: NDArray[np.int32]
    """(sessions, width): the document at every place, a row of the ranking data; −1 beyond the end of a short page."""
    length: NDArray[np.int64]
    """Documents on each page."""


class Sampler(Protocol):
    """A policy prepared for some data."""

    def sample(self, query: NDArray[np.integer], width: int, rng: np.random.Generator) -> Rankings:
        """A page of at most `width` documents for each session, given the number of its query."""
        ...


@declares(temperature=Number(0))
class Policy(ABC):
    """`temperature`: of the Plackett–Luce model; 0 sorts. `seed`: of whatever is drawn once and for all: the order
    among equal scores at temperature 0 and, where a policy has any, its noise and its training."""

    def __init__(self, *, temperature: float = 0.0, seed: int = 0) -> None:
        self.temperature = temperature
        self.seed = seed

    @abstractmethod
    def scores(self, data: RankingData) -> Floats:
        """The score of every document; only differences within a query matter."""

    def sampler(self, data: RankingData) -> Sampler:
        """Prepare for `data`."""
        return self._prepare(data)

    def sample(self, data: RankingData, query: NDArray[np.integer], width: int, rng: np.random.Generator) -> Rankings:
        """A page of at most `width` documents for each session. To draw several times, use one `sampler`."""
        return self.sampler(data).sample(query, width, rng)

    def expected_ranks(self, data: RankingData) -> Floats:
        """The mean rank (from 1) of every document among all of its query."""
        return self._prepare(data).expected_ranks()

    def _prepare(self, data: RankingData) -> _Fixed | _PlackettLuce:
        scores = check_scores(self.scores(data), data)
        if self.temperature == 0:
            return _Fixed(data, fixed.order_documents(scores, data.offsets, self.seed))
        return _PlackettLuce(data, scores, self.temperature)


class _Fixed:
    """One ranking for each query."""

    def __init__(self, data: RankingData, order: NDArray[np.int32]) -> None:
        self._data = data
        self._order = order

    def sample(self, query: NDArray[np.integer], width: int, rng: np.random.Generator) -> Rankings:
        rows, length = allocate_pages(self._data, query, width)
        fixed.fill(self._data.offsets, self._order, query, rows)
        return Rankings(rows, length)

    def expected_ranks(self) -> Floats:
        return fixed.compute_ranks(self._order, self._data.offsets)


class _PlackettLuce:
    def __init__(self, data: RankingData, scores: Floats, temperature: float) -> None:
        self._data = data
        self._temperature = temperature
        self._order = fixed.order_documents(scores, data.offsets, 0)
        self._scores = scores[self._order]
        self._suffix = plackett_luce.suffix_weights(self._scores, data.offsets, temperature)

    def sample(self, query: NDArray[np.integer], width: int, rng: np.random.Generator) -> Rankings:
        rows, length = allocate_pages(self._data, query, width)
        plackett_luce.fill(
            self._data.offsets, self._order, self._scores, self._suffix, self._temperature, query, rng, rows
        )
        return Rankings(rows, length)

    def expected_ranks(self) -> Floats:
        ranks = np.empty(len(self._scores))
        ranks[self._order] = plackett_luce.expected_ranks(self._scores, self._data.offsets, self._temperature)
        return ranks


def check_scores(scores: NDArray[np.floating], data: RankingData) -> Floats:
    """Scores as float64, one for every document and all of them finite."""
    n = data.n_documents
    if scores.ndim != 1 or len(scores) > n:
        raise EluteError(f"{n:,} documents, but scores of shape {scores.shape}; give one score for each document")
    wrong = np.flatnonzero(~np.isfinite(scores))
    row = int(wrong[0]) if len(wrong) else len(scores)
    if row < n:
        query = data.queries[np.searchsorted(data.offsets, row, side="right") - 1]
        what = (
            f"score {scores[row]} is not finite" if row < len(scores) else f"no score ({len(scores):,} for {n:,} rows)"
        )
        raise EluteError(f"query '{query}', document '{data.documents[row]}': {what}; give every document a score")
    return np.asarray(scores, np.float64)


def allocate_pages(
    data: RankingData, query: NDArray[np.integer], width: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Arrays for the pages of some sessions, and how long each will be."""
    if width < 1:
        raise EluteError(f"a page of {width} documents shows nothing; pass a width of 1 or more")
    if len(query) and (query.min() < 0 or query.max() >= data.n_queries):
        raise EluteError(f"sessions name queries {query.min()} to {query.max()}; there are 0 to {data.n_queries - 1}")
    return np.empty((len(query), width), np.int32), np.minimum(np.diff(data.offsets), width)[query]

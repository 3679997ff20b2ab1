"""Ranking data: queries, their documents, features and grades. What worlds are made of and rankers learn from.

numpy only, so that learners run where no engine is installed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RankingData:
    """Documents in rows, those of one query together; `offsets[q]:offsets[q + 1]` are the rows of query q."""

    features: NDArray[np.float32]
    """(documents, features)."""
    grades: NDArray[np.int32]
    """By document, from 0."""
    offsets: NDArray[np.int64]
    """(queries + 1)."""
    queries: NDArray[np.str_]
    """The queries' ids, each once, in order of first appearance."""
    documents: NDArray[np.str_]
    """The documents' ids; unique within a query."""

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_documents(self) -> int:
        return len(self.grades)

    @property
    def query_of(self) -> NDArray[np.int64]:
        """The query of every document, by number."""
        return np.repeat(np.arange(self.n_queries), np.diff(self.offsets))

    def keep(self, rows: NDArray[np.bool_]) -> RankingData:
        """Only some documents, given by a mask; queries left without any are dropped."""
        counts = np.bincount(self.query_of[rows], minlength=self.n_queries)
        some = counts > 0
        return RankingData(
            self.features[rows],
            self.grades[rows],
            np.concatenate(([0], np.cumsum(counts[some]))),
            self.queries[some],
            self.documents[rows],
        )

    def with_features(self, features: NDArray[np.float32]) -> RankingData:
        """The same documents with other features."""
        return replace(self, features=features)

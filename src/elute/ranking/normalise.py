"""Features on a common scale: an explicit step between reading ranking data and learning from it.

numpy only. Every function gives new data and leaves its argument as it was; the result is in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.ranking.data import RankingData

_ROWS = 1 << 16


def scale_by_query(data: RankingData) -> RankingData:
    """Every feature to [0, 1] within each query, by its least and largest value there, as LETOR 4.0 ships its features.

    A feature that is the same for all documents of a query is 0 there. Needs no fit: a query is its own scale.
    """
    features = np.empty_like(data.features)
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        here = data.features[start:end].astype(np.float64)
        if len(here):
            low = here.min(axis=0)
            spread = here.max(axis=0) - low
            features[start:end] = (here - low) / np.where(spread > 0.0, spread, 1.0)
    return data.with_features(features)


@dataclass(frozen=True, eq=False)
class LogStandard:
    """x ↦ (sign(x)·log(1 + |x|) − mean) / sd by feature, with mean and sd of the training data (`fit`).

    The logarithm tames counts that run over many orders of magnitude (MSLR, Istella); the sign keeps what is
    negative. A feature that never varies in the training data becomes 0 there, and is only shifted elsewhere.
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]

    @classmethod
    def fit(cls, data: RankingData) -> LogStandard:
        """Take mean and sd from training data."""
        if data.n_documents == 0:
            raise EluteError("no document to take means from; pass training data with documents")
        mean = sum(_signed_log(part).sum(axis=0) for part in split_rows(data.features)) / data.n_documents
        variance = (
            sum(((_signed_log(part) - mean) ** 2).sum(axis=0) for part in split_rows(data.features)) / data.n_documents
        )
        sd = np.sqrt(variance)
        return cls(mean, np.where(sd > 1e-12 * np.abs(mean), sd, 1.0))

    def __call__(self, data: RankingData) -> RankingData:
        """Apply to any data with the same features."""
        features = np.empty_like(data.features)
        for part, out in zip(split_rows(data.features), split_rows(features), strict=True):
            out[:] = self.apply(part)
        return data.with_features(features)

    def apply(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Apply to some rows."""
        if features.shape[1] != len(self.mean):
            raise EluteError(
                f"the data have {features.shape[1]} features, but the scale was taken from {len(self.mean)}; "
                "read both with the same n_features"
            )
        return (_signed_log(features) - self.mean) / self.sd


def split_rows(features: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Views of some rows at a time, so that float64 copies stay small."""
    return [features[start : start + _ROWS] for start in range(0, max(len(features), 1), _ROWS)]


def _signed_log(features: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = features.astype(np.float64)
    return np.sign(wide) * np.log1p(np.abs(wide))

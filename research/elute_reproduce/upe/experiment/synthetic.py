"""A synthetic ranking set and two logging policies for it: large enough to tell learners apart, and needing no data.

numpy only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.ranking.data import RankingData

FEATURES = 136
GRADE_SHARES = (0.52, 0.23, 0.13, 0.08, 0.04)
MIX = {"strong": 0.95, "weak": 0.47}
"""Correlation of a policy's scores with what makes grades, for an nDCG@10 of about .91 and .54."""


class Synthetic(NamedTuple):
    """Graded documents, and what two logging policies score them."""

    train: RankingData
    validation: RankingData
    test: RankingData
    logging: dict[str, NDArray[np.float32]]
    """By document of `train`."""


def draw_synthetic(queries: int = 1_400, seed: int = 0) -> Synthetic:
    """Queries of 20 to 30 documents with 136 features and 5 grades; grades follow a smooth function and noise."""
    rng = np.random.default_rng(seed)
    inner, outer = rng.normal(size=(FEATURES, 32)) / FEATURES**0.5, rng.normal(size=32) / 32**0.5
    other = rng.normal(size=FEATURES) / FEATURES**0.5

    def draw_split(count: int) -> tuple[RankingData, NDArray[np.float64]]:
        offsets = np.concatenate(([0], np.cumsum(rng.integers(20, 31, count))))
        x = rng.normal(size=(offsets[-1], FEATURES))
        signal = standardise(np.tanh(2 * x @ inner) @ outer)
        noisy = signal + 0.3 * rng.normal(size=len(x))
        grades = np.searchsorted(np.quantile(noisy, np.cumsum(GRADE_SHARES)[:-1]), noisy).astype(np.int32)
        names = np.arange(len(x)).astype(np.str_)
        return RankingData(x.astype(np.float32), grades, offsets, names[:count], names), signal

    (data, signal), (validation, _), (test, _) = (
        draw_split(queries),
        draw_split(queries // 7),
        draw_split(queries * 2 // 7),
    )
    apart = standardise(data.features @ other)
    scores = {name: (mix * signal + (1 - mix**2) ** 0.5 * apart).astype(np.float32) for name, mix in MIX.items()}
    return Synthetic(data, validation, test, scores)


def standardise(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """With mean 0 and standard deviation 1."""
    return np.asarray((values - values.mean()) / values.std(), np.float64)

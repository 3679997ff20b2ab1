"""Places and grades by drawing relevances and ranking them, one query at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def draw_places(shape: Floats, rate: Floats, draws: int, seed: int) -> NDArray[np.int64]:
    """(draws, items): how many of the others each item beats."""
    relevance = np.random.default_rng(seed).gamma(shape, 1 / rate, size=(draws, len(shape)))
    return relevance.argsort(axis=1).argsort(axis=1)


def count_grades(beaten: NDArray[np.int64], levels: int) -> Floats:
    """(items, levels): how often an item has each grade, by equal bands of its place."""
    items = beaten.shape[1]
    grade = np.floor(levels * (beaten + 0.5) / items).astype(int)
    return np.stack([(grade == level).mean(axis=0) for level in range(levels)], axis=1)


def measure_openness(shape: Floats, rate: Floats, draws: int, seed: int) -> Floats:
    """By item: the mean variance of its comparisons, relative to that of a coin."""
    relevance = np.random.default_rng(seed).gamma(shape, 1 / rate, size=(draws, len(shape)))
    items = len(shape)
    return np.array(
        [
            np.mean([4 * np.var(relevance[:, one] > relevance[:, other]) for other in range(items) if other != one])
            for one in range(items)
        ]
    )

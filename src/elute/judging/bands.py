"""The most probable grade of an item under the posteriors of its query, and how probable it is.

A place is the number K of other items that an item beats, and its grade ⌊levels · (K + 1/2) / items⌋: equal bands.
Given the item's own relevance r, it beats each of the others by itself, with the probability F(r) that the other's
posterior has below r; so K is a sum of independent events. Its distribution is exact in small queries and normal in
large ones, and is averaged over equally probable values of r. Items that are alone in their query have bands of the
population.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv, ndtr

from elute.known.pairs import OTHERS, sort_usable, stack_queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS = 16
"""Equally probable values of an item's relevance, the middles of as many bands of its distribution. Where comparisons
are certain the place jumps with relevance, and evenly weighted points are off by least."""

SMALL = 40
"""Items of a query up to which places are counted exactly."""

_DIGITS = 9
"""Probabilities that agree so far are equal: which of two grades is taken must not hang on rounding."""


class ProbableGrades(NamedTuple):
    """By item: the most probable grade, of equally probable ones the lowest, and its probability."""

    grade: Ints
    confidence: Floats


def grade_places(
    shape: Floats,
    rate: Floats,
    query: Ints,
    population: tuple[float, float],
    levels: int,
    wanted: NDArray[np.bool_] | None = None,
) -> ProbableGrades:
    """Bands of place within the query. `query` holds codes; `population`: shape and rate of all relevances. Items that
    are not `wanted` are compared with, but have no confidence themselves."""
    probability = np.full((len(shape), levels), np.nan)
    chosen = np.ones(len(shape), np.bool_) if wanted is None else wanted
    for rows in stack_queries(query, sort_usable(shape, rate)):
        line, at = np.nonzero(chosen[rows])
        one = rows[line, at]
        if rows.shape[1] == 1:
            cuts = gammaincinv(population[0], np.arange(1, levels) / levels) / population[1]
            probability[one] = _find_bands(shape[one], rate[one], cuts)
        else:
            probability[one] = _compare(shape, rate, rows[line], at, levels)
    return _choose(probability)


def grade_relevance(shape: Floats, rate: Floats, cuts: tuple[float, ...]) -> ProbableGrades:
    """Bands of relevance between `cuts`."""
    return _choose(_find_bands(shape, rate, np.array(cuts)))


def _find_bands(shape: Floats, rate: Floats, cuts: Floats) -> Floats:
    """Probability that relevance lies below, between and above the cuts, along a new last axis."""
    below = gammainc(shape[..., None], rate[..., None] * cuts)
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


def _compare(shape: Floats, rate: Floats, rows: Ints, at: Ints, levels: int) -> Floats:
    """Probabilities of grades, (items, levels). `rows`: for each item all of its query, equally many, where it is the
    one `at` a place."""
    n = rows.shape[1]
    others = np.unique(np.linspace(0, n - 1, min(n, OTHERS)).astype(np.int64))
    itself = others == at[:, None]
    one, other = rows[np.arange(len(at)), at], rows[:, others]
    count = _count_exactly if n <= SMALL else _count_normally
    found = np.zeros((len(at), levels))
    for point in (np.arange(POINTS) + 0.5) / POINTS:
        r = gammaincinv(shape[one], point) / rate[one]
        wins = gammainc(shape[other], rate[other] * r[:, None])
        wins[itself] = 0.0
        found += count(wins, len(others) - itself.sum(axis=1), n, levels) / POINTS
    return found


def _count_exactly(wins: Floats, compared: Ints, n: int, levels: int) -> Floats:
    """The distribution of K, one other item after the other; all of them are compared."""
    chance = np.zeros_like(wins)
    chance[:, 0] = 1.0
    for win in wins.T[:, :, None]:
        moved = chance[:, :-1] * win
        chance *= 1.0 - win
        chance[:, 1:] += moved
    grade = levels * (2 * np.arange(n) + 1) // (2 * n)
    return np.asarray(chance @ (grade[:, None] == np.arange(levels)))


def _count_normally(wins: Floats, compared: Ints, n: int, levels: int) -> Floats:
    """K taken as normal, of all other items where only some are compared."""
    mean = wins.sum(axis=1) * (n - 1) / compared
    variance = (wins * (1.0 - wins)).sum(axis=1) * (n - 1) / compared
    least = -(-(2 * np.arange(1, levels) * n - levels) // (2 * levels))  # the least K of each grade above 0
    deviation = np.sqrt(np.maximum(variance, 1e-12))  # none where every comparison is certain
    reached = ndtr((mean[:, None] - least + 0.5) / deviation[:, None])
    return np.asarray(-np.diff(reached, axis=1, prepend=1.0, append=0.0))


def _choose(probability: Floats) -> ProbableGrades:
    grade = np.argmax(probability.round(_DIGITS), axis=1)
    return ProbableGrades(grade, np.take_along_axis(probability, grade[:, None], 1)[:, 0])

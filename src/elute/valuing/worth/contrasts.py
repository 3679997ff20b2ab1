"""Differences with intervals that hold together, and verdicts.

With several rankings there are several differences: from what was shown, and from each other. All their intervals hold
at once with 95% confidence: their half widths are c standard errors, c the 95% point of the largest of |z| where the z
are normal with the correlations of the differences. For one difference c is 1.96.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from elute.valuing.worth.estimators import TOO_SMALL
from elute.valuing.worth.find import Worth

Floats = NDArray[np.float64]
Verdict = Literal["better", "worse", "cannot tell"]

CONFIDENCE = 0.95
_DRAWS = 40_000
_SEED = 0


class ValueInterval(NamedTuple):
    """An estimate, its standard error and the ends of its interval."""

    value: float
    se: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Of a difference: whether its interval leaves out 0."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "cannot tell"

    def to_dict(self, name: str = "value", low: str = "low", high: str = "high") -> dict[str, Any]:
        """null where there is no number."""
        return {key: to_number(v) for key, v in ((name, self.value), (low, self.low), (high, self.high))}


NOTHING = ValueInterval(math.nan, math.nan, math.nan, math.nan)


class Contrasts(NamedTuple):
    """`values`: of what was shown and of each ranking, each at 95% by itself. `differences`: of each ranking from what
    was shown; `between`: of two rankings, by their numbers; these hold together."""

    values: list[ValueInterval]
    differences: list[ValueInterval]
    between: dict[tuple[int, int], ValueInterval]


def contrast(worth: Worth, clusters: int | None = None) -> Contrasts:
    """Of values with their covariance; `clusters`: how many, where they were few enough to matter."""
    rankings = len(worth.base)
    pairs = [(row, worth.base[row - 1]) for row in range(1, rankings + 1)]
    pairs += list(combinations(range(1, rankings + 1), 2))
    weights = np.zeros((len(pairs), len(worth.value)))
    for at, (row, base) in enumerate(pairs):
        weights[at, row] += 1.0
        weights[at, base] -= 1.0
    covariance = weights @ worth.covariance @ weights.T
    point = find_point(covariance, clusters)
    alone = find_point(np.ones((1, 1)), clusters)
    found = [
        _make(float(w @ worth.value), float(c), point) for w, c in zip(weights, np.diagonal(covariance), strict=True)
    ]
    values = [_make(float(worth.value[row]), float(worth.covariance[row, row]), alone) for row in range(rankings + 1)]
    between = {(a - 1, b - 1): one for (a, b), one in zip(pairs[rankings:], found[rankings:], strict=True)}
    return Contrasts(values, found[:rankings], between)


def judge(difference: ValueInterval, estimator: str) -> Verdict:
    """What a difference from what was shown says by this estimator: values that are too small show no loss."""
    lost = difference.verdict == "worse" and estimator in TOO_SMALL
    return "cannot tell" if lost else difference.verdict


def find_point(covariance: Floats, clusters: int | None = None) -> float:
    """c: the standard errors of half an interval."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    used = deviation > 0
    wide = 1.0 if clusters is None else float(stdtrit(max(clusters - 1, 1), (1 + CONFIDENCE) / 2)) / 1.959964
    if used.sum() < 2:
        return 1.959964 * wide
    correlation = covariance[np.ix_(used, used)] / np.outer(deviation[used], deviation[used])
    size, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(size, 0.0))
    drawn = np.random.default_rng(_SEED).standard_normal((_DRAWS, len(size))) @ root.T
    return max(float(np.quantile(np.abs(drawn).max(axis=1), CONFIDENCE)), 1.959964) * wide


def to_number(value: float) -> float | None:
    """Six digits; None for what JSON cannot write."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _make(value: float, variance: float, point: float) -> ValueInterval:
    se = math.sqrt(max(variance, 0.0))
    return ValueInterval(value, se, value - point * se, value + point * se)

"""The fixed-effect fit of propensities for tables held in memory: what the learner `elute` weighs clicks by.

It is the fit of `elute fit --model pbm --relevance-prior beta` (`elute.estimate.solve.conditional`) for a few
positions, in numpy alone, so that it runs where networks are trained. Given how many clicks an item has in all, they
fall on its positions with chances ∝ impressions · propensity, whatever its relevance and whoever ranked it there; the
likelihood of that is concave in the logs, and a few Newton steps reach its maximum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STEPS = 50
_TOLERANCE = 1e-8
"""Of the Newton decrement, in standard errors."""


class FixedEffects(NamedTuple):
    """Propensities by position, as logs of their ratios to the last one."""

    log_ratio: Floats
    log_se: Floats
    """Of each log ratio; not below the truth, as clicks vary less than Poisson's."""
    group: Ints
    """By position: equal numbers share one propensity, because the clicks cannot tell them apart."""

    @property
    def merges(self) -> int:
        """Pairs of positions that were made to agree; 0 where the log is recoverable."""
        return len(self.group) - len(set(self.group.tolist()))


def fixed_effects(impressions: ArrayLike, clicks: ArrayLike) -> FixedEffects:
    """Fit (items, positions) counts. Positions are tied by items clicked under both; what nothing ties is merged."""
    shown, clicked = np.asarray(impressions, np.float64), np.asarray(clicks, np.float64)
    group = merge_positions(clicked)
    into = np.eye(group.max() + 1)[group]
    shown, clicked = shown @ into, clicked @ into
    some = (clicked.sum(axis=1) > 0) & ((shown > 0).sum(axis=1) > 1)
    log_o, information = _maximise(shown[some], clicked[some])
    last = group[-1]
    inverse = np.linalg.pinv(information, hermitian=True)
    variance = np.diag(inverse) + inverse[last, last] - 2 * inverse[last]
    return FixedEffects((log_o - log_o[last])[group], np.sqrt(np.maximum(variance, 0.0))[group], group)


def merge_positions(clicks: Floats) -> Ints:
    """Groups of positions after the cheapest merges: a spanning tree over components, nearest positions first."""
    positions = clicks.shape[1]
    clicked = (clicks > 0).astype(np.float64)
    tied = (clicked.T @ clicked > 0) | np.eye(positions, dtype=bool)
    reach = np.linalg.matrix_power(tied.astype(np.float64), positions) > 0
    component = reach.argmax(axis=1)
    group = np.arange(positions)
    pairs = [(apart, k) for apart in range(1, positions) for k in range(positions - apart)]
    for apart, k in pairs:
        one, other = component[k], component[k + apart]
        if one != other:
            component[component == other] = one
            group[group == group[k + apart]] = group[k]
    return np.asarray(np.unique(group, return_inverse=True)[1], np.int64)


def _maximise(shown: Floats, clicked: Floats) -> tuple[Floats, Floats]:
    """Log propensities at the maximum, and the information there."""
    log_o = np.zeros(shown.shape[1])
    value, slope, information = _likelihood(log_o, shown, clicked)
    for _ in range(_STEPS):
        step = np.linalg.pinv(information, hermitian=True) @ slope
        if step @ slope < _TOLERANCE**2:
            break
        length = 1.0
        while (found := _likelihood(log_o + length * step, shown, clicked))[0] < value and length > 1e-8:
            length /= 2
        log_o = log_o + length * step
        value, slope, information = found
    return log_o, information


def _likelihood(log_o: Floats, shown: Floats, clicked: Floats) -> tuple[float, Floats, Floats]:
    """Σ c log(n o / Σ n o), its slope, and its information: a Laplacian over positions."""
    chance = shown * np.exp(log_o - log_o.max())
    chance /= chance.sum(axis=1, keepdims=True)
    total = clicked.sum(axis=1)
    value = float((clicked * np.log(chance, out=np.zeros_like(chance), where=clicked > 0)).sum())
    expected = total @ chance
    information = np.diag(expected) - (chance * total[:, None]).T @ chance
    return value, clicked.sum(axis=0) - expected, information

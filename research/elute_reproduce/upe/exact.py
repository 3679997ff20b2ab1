"""What UPE's second stage comes to, solved exactly (Eq. 13 of the UPE paper): a law instead of trainings.

With the confounding effect frozen, a document of score s at position k has the logit s + b_k, and only b is learnt.
Where list q has the targets t_qk with the sum n_q, the loss −Σ t_qk log softmax(s_q + b)_k is least where

    Σ_q n_q softmax(s_q + b)_k = Σ_q t_qk     for every position k,

one solution up to a constant. Eq. 13 has the target softmax(y^p) for every list, y^p being the log propensities that
dual learning found. The first stage (Eq. 10) makes s the logging policy's score, up to a constant in each list.
Averaged over documents whatever their position (Eq. 6d), the answer is b. Averaged over documents at their own
positions (Eq. 7 as printed), it is b_k + E[s | k], which is y^p again but for curvature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

Floats = NDArray[np.float64]

LARGEST = 8.0
"""Scale of the score up to which the one is looked for that gives the truth."""


class ShownLists(NamedTuple):
    """What a logging policy showed: (lists, positions); NaN where a list has ended."""

    score: Floats
    relevance: Floats
    """The chance of a click where it is seen."""

    @property
    def there(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.score)


def solve(score: Floats, target: Floats, there: NDArray[np.bool_], most: int = 20_000) -> Floats:
    """b by position, against the last: proportional fitting, which closes in on the minimum from anywhere."""
    logits = np.where(there, score, -np.inf)
    weight = np.where(there, target, 0.0).sum(axis=1)
    wanted = np.log(np.where(there, target, 0.0).sum(axis=0))
    b = np.zeros(score.shape[1])
    for _ in range(most):
        shares = logits + b
        found = weight[:, None] * np.exp(shares - logsumexp(shares, axis=1, keepdims=True))
        step = wanted - np.log(found.sum(axis=0))
        b += step
        if np.ptp(step) < 1e-12:
            break
    return np.asarray(b - b[-1])


def target_of(log_propensities: Floats, there: NDArray[np.bool_]) -> Floats:
    """softmax(y^p) over the positions that each list has (Eq. 13)."""
    logits = np.where(there, log_propensities, -np.inf)
    return np.asarray(np.exp(logits - logsumexp(logits, axis=1, keepdims=True)))


def adjust(shown: ShownLists, log_propensities: Floats, scale: float) -> Floats:
    """log UPE against the last position: dual learning's log propensities as the target, the score times `scale`."""
    return solve(scale * shown.score, target_of(log_propensities, shown.there), shown.there)


def adjust_own(shown: ShownLists, log_propensities: Floats, scale: float) -> Floats:
    """The same read as Eq. 7 is printed: documents at their own positions."""
    found = adjust(shown, log_propensities, scale) + scale * np.nanmean(shown.score, axis=0)
    return np.asarray(found - found[-1])


def adjust_clicks(shown: ShownLists, propensities: Floats, score: Floats) -> Floats:
    """With expected clicks as the target in place of dual learning's propensities."""
    return solve(score, propensities * shown.relevance, shown.there)


def approximate(shown: ShownLists, log_propensities: Floats, scale: float) -> Floats:
    """log DLA_k − scale · E[score | k]: what the law says where lists are alike."""
    found = log_propensities - scale * np.nanmean(shown.score, axis=0)
    return np.asarray(found - found[-1])


def find_scale(shown: ShownLists, log_propensities: Floats, truth: float) -> float | None:
    """The scale of the score at which p₁/p₁₀ comes out right; None where none up to `LARGEST` does."""

    def miss(scale: float) -> float:
        return float(adjust(shown, log_propensities, scale)[0] - np.log(truth))

    grid = np.linspace(0, LARGEST, 33)
    values = [miss(scale) for scale in grid]
    for low, high, a, b in zip(grid, grid[1:], values, values[1:], strict=False):
        if a == 0 or a * b < 0:
            return float(low if a == 0 else brentq(miss, low, high, xtol=1e-4))
    return None

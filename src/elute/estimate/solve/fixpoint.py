"""Alternating updates run to their fixed point, with an honest estimate of how far it still is.

Such updates close in by a constant ratio a step, often near 1: a small change does not mean a small error.
With `change` the largest change of a step and q its ratio to the one before, the steps still to come sum to
about change·q/(1 - q). That, not the change, is compared with the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elute.estimate.solve.problem import Floats
from elute.progress import Progress

_NOISE = 4 * np.finfo(np.float64).eps


class Fixpoint(NamedTuple):
    """Propensities and relevances where the updates ended; `reason` is empty where they settled."""

    propensity: Floats
    relevance: Floats
    iterations: int
    reason: str


def iterate(
    update: Callable[[Floats, Floats], tuple[Floats, Floats]],
    propensity: Floats,
    relevance: Floats,
    tolerance: float,
    max_iter: int,
    progress: Progress,
) -> Fixpoint:
    """Apply `update` until propensities and relevances are within `tolerance` of where they are heading."""
    before = ahead = np.inf
    for iteration in range(1, max_iter + 1):
        new_propensity, new_relevance = update(propensity, relevance)
        change = max(np.abs(new_propensity - propensity).max(), np.abs(new_relevance - relevance).max())
        propensity, relevance = new_propensity, new_relevance
        progress("fitting", iteration, max_iter)
        ahead = change * change / (before - change) if change < before < np.inf else np.inf
        if ahead <= tolerance or change <= _NOISE:
            return Fixpoint(propensity, relevance, iteration, "")
        before = change
    reason = f"stopped after {max_iter:,} iterations, about {ahead:.1g} from where propensities and relevance settle"
    return Fixpoint(propensity, relevance, max_iter, reason)

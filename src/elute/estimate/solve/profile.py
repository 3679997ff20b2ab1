"""Each item's best relevance for given propensities, and a rough first guess of propensities.

Given o, the best relevance of an item solves Σ s·p/(1-p) = C, with s its impressions without a click, C its
clicks and p = r·o. In log r the logarithm of the left side is convex and rising, so Newton's method never
steps past the root from the right. A point to the right is known: one cell alone reaches C at p = C/(C+s).
No other safeguard is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit

BELOW_ONE = 1.0 - 2.0**-53
"""The largest probability whose complement is not 0."""

_LAST_EXCESS = 1e-7
"""Of the logarithm over its root. A step squares it, however steep the logarithm is."""

_MAX_STEPS = 100


@jit
def scale_barrier(clicks: float, barrier: float) -> float:
    """What stands for the missing impressions without a click of a cell clicked every time. Beyond a million
    clicks it grows with them: the distance to p = 1 it leaves must not drown in rounding."""
    return barrier * max(1.0, 1e-6 * clicks)


def fit_items(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats, barrier: float
) -> Floats:
    """The best relevance of every item; 0 for one without clicks, or shown only where o = 0.

    A cell clicked every time would have p = 1 and infinite log-odds: it counts as having had `barrier`
    impressions without a click."""
    return np.concatenate(map_blocks(lambda _, own: _fit_items(own, factor, impressions, clicks, o, barrier), offsets))


@jit
def _fit_items(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats, barrier: float
) -> Floats:
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
        r = math.inf
        for cell in range(begin, end):
            c = float(clicks[cell])
            s = max(float(impressions[cell]) - c, scale_barrier(c, barrier))
            reach = o[factor[cell]] * (total + s)
            if reach > 0.0:
                r = min(r, total / reach)
        if total == 0.0 or r == math.inf:
            continue
        for _ in range(_MAX_STEPS):
            skipped = 0.0
            slope = 0.0
            for cell in range(begin, end):
                c = float(clicks[cell])
                p = min(r * o[factor[cell]], BELOW_ONE)
                part = max(float(impressions[cell]) - c, scale_barrier(c, barrier)) * p / (1.0 - p)
                skipped += part
                slope += part / (1.0 - p)
            excess = math.log(skipped / total)
            r *= math.exp(-max(excess, 0.0) * skipped / slope)
            if excess < _LAST_EXCESS:
                break
        out[item] = r
    return out


@jit
def alternate(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats, steps: int
) -> Floats:
    """Propensities after some alternations of the Poisson model, clicks ≈ n·r·o, each in closed form.

    Cheap and rough: a start for Newton. Every item must have a click; factors without cells stay as they are.
    """
    clicked = np.zeros_like(o)
    for cell in range(factor.shape[0]):
        clicked[factor[cell]] += clicks[cell]
    for _ in range(steps):
        expected = np.zeros_like(o)
        for item in range(offsets.shape[0] - 1):
            begin, end = offsets[item], offsets[item + 1]
            total = 0.0
            reach = 0.0
            for cell in range(begin, end):
                total += clicks[cell]
                reach += impressions[cell] * o[factor[cell]]
            for cell in range(begin, end):
                expected[factor[cell]] += impressions[cell] * (total / reach)
        o = np.where(clicked > 0.0, clicked / np.maximum(expected, 1e-300), o)
    return o

"""Clicks drawn given every item's total: independent binomials conditioned on their sum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.jit import jit

_MOST_TRIES = 100_000
_FURTHEST, _HALVINGS = 60.0, 60
"""Of the logarithm of odds: how far they may have to move, and steps of bisection."""


@jit
def tilt_odds(offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, p: Floats) -> Floats:
    """Odds p/(1-p) times a number for each item, such that its expected clicks are its clicks.

    Given their sum, binomials do not change by that, and drawing them until they have it succeeds soonest."""
    out = p.copy()
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        shown = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
            shown += impressions[cell]
        if total == 0.0 or total == shown:
            continue
        low, high = -_FURTHEST, _FURTHEST
        for _ in range(_HALVINGS):
            middle = math.exp(0.5 * (low + high))
            expected = 0.0
            for cell in range(begin, end):
                out[cell] = middle * p[cell] / (1.0 - p[cell] + middle * p[cell])
                expected += impressions[cell] * out[cell]
            if expected < total:
                low = math.log(middle)
            else:
                high = math.log(middle)
    return out


@jit
def draw_given_totals(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    p: Floats,
    rng: np.random.Generator,
) -> Amounts:
    """Binomial(n, p) clicks of every cell given the sum over each item's cells, exactly, by rejection.

    All cells but the one of largest variance are drawn; that one must then make up the sum, and is accepted with its
    probability over its most probable value's. About one in √(cells of the item) is."""
    out = clicks.copy()
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0
        shown = 0
        last = begin
        for cell in range(begin, end):
            total += int(clicks[cell])
            shown += int(impressions[cell])
            if impressions[cell] * p[cell] * (1.0 - p[cell]) > impressions[last] * p[last] * (1.0 - p[last]):
                last = cell
        if total == 0 or total == shown or end - begin < 2:
            continue
        n = int(impressions[last])
        odds = math.log(p[last] / (1.0 - p[last]))
        mode = min(int((n + 1) * p[last]), n)
        top = mode * odds - math.lgamma(mode + 1.0) - math.lgamma(n - mode + 1.0)
        for _ in range(_MOST_TRIES):
            rest = total
            for cell in range(begin, end):
                if cell != last:
                    drawn = rng.binomial(int(impressions[cell]), p[cell])
                    out[cell] = drawn
                    rest -= drawn
            if 0 <= rest <= n:
                value = rest * odds - math.lgamma(rest + 1.0) - math.lgamma(n - rest + 1.0)
                if math.log(1.0 - rng.random()) <= value - top:
                    out[last] = rest
                    break
        else:
            out[begin:end] = clicks[begin:end]
    return out

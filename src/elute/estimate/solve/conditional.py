"""Propensities from the clicks of every item given their number: for logs whose items have few impressions.

The maximum of the likelihood over relevance and propensities together is biased where every item has only a
handful of impressions, however many items there are: each adds a relevance of its own to estimate
(incidental parameters). Given an item's clicks C, those of rare clicks fall on its cells with probabilities
n·o/Σ n·o, which relevance has no part in. Maximising

    Σ_x Σ_t c·log(n·o(t) / Σ_s n·o(s))

sets Σ_x c - C·n·o/Σ n·o to 0 for every factor, and that has expectation 0 at the true propensities whatever
the click probabilities are, as E c = n·r·o: no bias to correct. (In other words, maximum likelihood of a
Poisson model with a fixed effect for every item.) Newton's method as in `elute.estimate.solve.interior`, with weights
n·r·o, r = C/Σ n·o; nothing is bounded here. The inverse of its information overstates the variance, by
1/(1 - p) at most: clicks vary less than Poisson's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.cells.counts import Amounts, Cells
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.interior import Maximum, describe_distance
from elute.estimate.solve.laplacian import solve
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.blocks import join_blocks, map_blocks
from elute.kernels.jit import jit
from elute.progress import Progress

_SHRINK = 0.3
_SHORTEST = 1e-8
_ARMIJO = 1e-4
_ROUNDING = 1e-12
_SHARE = 1e-6
_CG_STEPS = 5_000


def maximise(
    cells: Cells,
    o: Floats,
    tolerance: float,
    max_iter: int,
    progress: Progress,
    prior: csr_array | None = None,
    space: EffectSpace | None = None,
    finish: bool = False,
) -> Maximum:
    """The maximum from propensities `o`, over items that have clicks; arguments as in `interior.maximise`."""
    log_o = np.log(o)
    weight, right, scale = np.empty(len(cells.factor)), np.empty_like(log_o), np.empty_like(log_o)

    def evaluate(at: Floats) -> float:
        value = linearise(*cells, at, weight, right, scale)
        if prior is None:
            return value
        pull = prior @ at
        np.subtract(right, pull, out=right)
        np.add(scale, prior.diagonal(), out=scale)
        return value - 0.5 * float(at @ pull)

    take_step = solve if space is None else space.solve
    value = evaluate(log_o)
    for iteration in range(max_iter + 1):
        step, energy, _, solved = take_step(*cells[:2], weight, prior, right, scale, _SHARE, _CG_STEPS)
        if energy**0.5 <= tolerance and solved:
            return Maximum(log_o + step if finish else log_o, iteration, "")
        if iteration == max_iter:
            break
        progress("fitting", iteration + 1, max_iter)
        length, least = 1.0, value - _ROUNDING * abs(value)
        while not (value := evaluate(log_o + length * step)) >= least + _ARMIJO * length * energy:
            length *= _SHRINK
            if length < _SHORTEST:
                return Maximum(log_o, iteration, "no step raises the likelihood")
        log_o = log_o + length * step
    return Maximum(log_o, max_iter, f"stopped after {max_iter} steps, {describe_distance(energy**0.5)}")


def score(cells: Cells, o: Floats) -> float:
    """The conditional log-likelihood but for a constant."""
    weight, by_factor = np.empty(len(cells.factor)), np.empty_like(o)
    return linearise(*cells, np.log(o), weight, by_factor, np.empty_like(o))


def estimate_items(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats
) -> Floats:
    """C/Σ n·o of every item: unbiased, not bound by r·o ≤ 1; 0 for one without clicks."""
    return join_blocks(_estimate_items, offsets, factor, impressions, clicks, o)


@jit
def _estimate_items(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats
) -> Floats:
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        total = 0.0
        reach = 0.0
        for cell in range(offsets[item], offsets[item + 1]):
            total += clicks[cell]
            reach += impressions[cell] * o[factor[cell]]
        if total > 0.0 and reach > 0.0:
            out[item] = total / reach
    return out


def expect_clicks(offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, r: Floats, o: Floats) -> Floats:
    """n·r·o of every cell."""
    out = np.empty(len(factor))
    map_blocks(lambda items, own: _expect_clicks(own, factor, impressions, r[items], o, out), offsets)
    return out


@jit
def _expect_clicks(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, r: Floats, o: Floats, out: Floats
) -> None:
    for item in range(offsets.shape[0] - 1):
        for cell in range(offsets[item], offsets[item + 1]):
            out[cell] = r[item] * impressions[cell] * o[factor[cell]]


@jit
def linearise(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    log_o: Floats,
    weight: Floats,
    right: Floats,
    scale: Floats,
) -> float:
    """The conditional likelihood; weights by cell, and by factor its gradient and the diagonal of L. Minus infinity
    where a step went too far."""
    o = np.exp(log_o)
    right[:] = 0.0
    scale[:] = 0.0
    value = 0.0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        reach = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
            reach += impressions[cell] * o[factor[cell]]
            value += clicks[cell] * log_o[factor[cell]]
        if not 0.0 < reach < math.inf:  # a step so long that propensities leave what a number can hold
            return -math.inf
        value -= total * math.log(reach)
        for cell in range(begin, end):
            t = factor[cell]
            share = impressions[cell] * o[t] / reach
            weight[cell] = total * share
            right[t] += clicks[cell] - weight[cell]
            scale[t] += weight[cell] * (1.0 - share)
    return value

"""The maximum of the position-based likelihood: Newton's method with the items eliminated.

In θ = log r and φ = log o the log-likelihood Σ c·η + s·log(1 - e^η), η = θ_x + φ_t < 0, c clicks and s
impressions without one, is concave. A Newton step solves for all of θ and φ at once; each item touches only
its own cells, so eliminating θ leaves L·δφ = g with L the weighted Laplacian of the identifiability graph
(weights s·p/(1-p)²), which conjugate gradients solve without forming it.

Cells with s > 0 keep η below 0 by themselves. A cell clicked every time does not: its likelihood c·η rises
up to the bound η ≤ 0. Such bounds are met as in a primal-dual interior-point method: a barrier μ·log(-η),
with μ → 0, and a multiplier for each bound, which gives the weight multiplier/(-η). (Newton on the profiled
likelihood alone fails there: it has a kink wherever an item moves from one bound to another.)

A Gaussian prior on φ (`elute.estimate.priors.smooth`) with precision Q adds the concave -½ φᵀQφ, and Q to L. Its
latent effects are factors without cells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.cells.counts import Amounts, Cells
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.laplacian import solve
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.profile import BELOW_ONE, fit_items, scale_barrier
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit
from elute.progress import Progress

BARRIER = 1e-6
"""The last μ: at most by so many nats for each cell clicked every time does the result miss the supremum."""

_FIRST_BARRIER = 0.1
_FALL = 0.03
"""By which μ goes down after a step that kept at least the share `_LONG` of its length."""

_LONG = 0.5
_TO_BOUND = 0.99
_SHRINK = 0.3
_SHORTEST = 1e-8
_ARMIJO = 1e-4
_ROUNDING = 1e-12
"""Share of the likelihood below which a difference is noise."""

_LOOSE, _TIGHT = 1e-2, 1e-8
"""Shares of its energy to which a step is solved, far from the maximum and near it."""

_CG_STEPS = 5_000
_SPREAD = 1e8
"""How far a multiplier may be from the one its barrier implies."""


class Maximum(NamedTuple):
    """Log-propensities at the maximum and what it took; `reason` is empty where it was reached."""

    log_o: Floats
    iterations: int
    reason: str


@jit
def _linearise(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    log_o: Floats,
    log_r: Floats,
    barrier: float,
    multiplier: Floats,
    weight: Floats,
    force: Floats,
    mass: Floats,
    right: Floats,
    scale: Floats,
) -> float:
    """The barrier function, and its Newton system: `weight` by cell; `force` (gradient) and `mass` (weights)
    by item; by factor, once the items are eliminated, the `right` side and the diagonal of L (`scale`).
    `multiplier` has one entry for each cell clicked every time, in order, and is kept near barrier/(-η)."""
    o = np.exp(log_o)
    right[:] = 0.0
    scale[:] = 0.0
    value = 0.0
    bound = 0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        theta = log_r[item]
        r = math.exp(theta)
        gradient = 0.0
        total = 0.0
        gained = 0.0
        for cell in range(begin, end):
            t = factor[cell]
            c = float(clicks[cell])
            s = float(impressions[cell]) - c
            gained += c * (theta + log_o[t])
            if s > 0.0:
                p = min(r * o[t], BELOW_ONE)
                left = 1.0 / (1.0 - p)
                pull = c - s * p * left
                weight[cell] = s * p * left * left
                gained += s * math.log(1.0 - p)
            else:
                slack = -(theta + log_o[t])
                own = scale_barrier(c, barrier)
                implied = own / slack
                multiplier[bound] = min(max(multiplier[bound], implied / _SPREAD), implied * _SPREAD)
                pull = c - implied
                weight[cell] = multiplier[bound] / slack
                gained += own * math.log(slack)
                bound += 1
            right[t] += pull
            gradient += pull
            total += weight[cell]
        value += gained
        force[item] = gradient
        mass[item] = total
        for cell in range(begin, end):
            share = weight[cell] / total
            right[factor[cell]] -= share * gradient
            scale[factor[cell]] += share * (total - weight[cell])
    return value


@jit
def _compute_steps(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    log_o: Floats,
    log_r: Floats,
    barrier: float,
    multiplier: Floats,
    weight: Floats,
    force: Floats,
    mass: Floats,
    step_o: Floats,
    step_r: Floats,
    step_multiplier: Floats,
) -> tuple[float, float]:
    """Fill in the steps of items and multipliers; how far one can go until some η, or multiplier, is 0."""
    reach = math.inf
    multiplier_reach = math.inf
    bound = 0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        rest = force[item]
        for cell in range(begin, end):
            rest -= weight[cell] * step_o[factor[cell]]
        step_r[item] = rest / mass[item]
        for cell in range(begin, end):
            t = factor[cell]
            change = step_r[item] + step_o[t]
            slack = -(log_r[item] + log_o[t])
            if change > 0.0:
                reach = min(reach, slack / change)
            if impressions[cell] == clicks[cell]:
                current = multiplier[bound]
                step = (scale_barrier(float(clicks[cell]), barrier) + current * change) / slack - current
                step_multiplier[bound] = step
                if step < 0.0:
                    multiplier_reach = min(multiplier_reach, -current / step)
                bound += 1
    return reach, multiplier_reach


def _linearise_blocks(
    cells: Cells,
    before: NDArray[np.int64],
    log_o: Floats,
    log_r: Floats,
    barrier: float,
    multiplier: Floats,
    weight: Floats,
    force: Floats,
    mass: Floats,
    right: Floats,
    scale: Floats,
) -> float:
    """`_linearise` over all items; `before`: the cells clicked every time that come before each item."""

    def run_block(own: slice, offsets: NDArray[np.int64]) -> tuple[float, Floats, Floats]:
        rights, scales, bound = np.empty_like(log_o), np.empty_like(log_o), slice(*before[[own.start, own.stop]])
        value = _linearise(
            offsets, cells.factor, cells.impressions, cells.clicks, log_o, log_r[own], barrier, multiplier[bound],
            weight, force[own], mass[own], rights, scales,
        )  # fmt: skip
        return value, rights, scales

    values, rights, scales = zip(*map_blocks(run_block, cells.offsets), strict=True)
    right[:], scale[:] = sum(rights), sum(scales)
    return float(sum(values))


def _compute_steps_blocks(
    cells: Cells,
    before: NDArray[np.int64],
    log_o: Floats,
    log_r: Floats,
    barrier: float,
    multiplier: Floats,
    weight: Floats,
    force: Floats,
    mass: Floats,
    step_o: Floats,
    step_r: Floats,
    step_multiplier: Floats,
) -> tuple[float, float]:
    """`_compute_steps` over all items."""

    def run_block(own: slice, offsets: NDArray[np.int64]) -> tuple[float, float]:
        bound = slice(*before[[own.start, own.stop]])
        return _compute_steps(
            offsets, cells.factor, cells.impressions, cells.clicks, log_o, log_r[own], barrier, multiplier[bound],
            weight, force[own], mass[own], step_o, step_r[own], step_multiplier[bound],
        )  # fmt: skip

    reaches, multiplier_reaches = zip(*map_blocks(run_block, cells.offsets), strict=True)
    return min(reaches), min(multiplier_reaches)


def maximise(
    cells: Cells,
    o: Floats,
    tolerance: float,
    max_iter: int,
    progress: Progress,
    prior: csr_array | None = None,
    space: EffectSpace | None = None,
    finish: bool = False,
    first_barrier: float = _FIRST_BARRIER,
) -> Maximum:
    """The maximum over cells whose items and factors have clicks, from propensities `o`.

    `tolerance`: the distance to it in standard errors (the Newton decrement) at which to stop. `prior`: the
    precision of log o; with it, factors need no clicks. Without it, factors without cells stay as they are. `space`:
    the effects that log o is made of, as it must be at `o` already. `finish`: take the step as well that told how near
    the maximum is, which leaves about the square of that distance. `first_barrier`: `BARRIER`, where `o` is near.
    """
    before = np.concatenate(([0], np.cumsum(cells.impressions == cells.clicks)))[cells.offsets]
    bounds = int(before[-1])
    barrier = first_barrier if bounds else BARRIER
    log_o, log_r = np.log(o), np.log(fit_items(*cells, o, barrier))
    weight, right, scale = np.empty(len(cells.factor)), np.empty_like(log_o), np.empty_like(log_o)
    force, mass, step_r = np.empty_like(log_r), np.empty_like(log_r), np.empty_like(log_r)
    multiplier, step_multiplier = np.ones(bounds), np.empty(bounds)

    def linearise(at_o: Floats, at_r: Floats) -> float:
        state = at_o, at_r, barrier, multiplier, weight, force, mass
        value = _linearise_blocks(cells, before, *state, right, scale)
        if prior is None:
            return value
        pull = prior @ at_o
        np.subtract(right, pull, out=right)
        np.add(scale, prior.diagonal(), out=scale)
        return value - 0.5 * float(at_o @ pull)

    share = _LOOSE
    take_step = solve if space is None else space.solve
    value = linearise(log_o, log_r)
    for iteration in range(max_iter + 1):
        step_o, energy, _, solved = take_step(*cells[:2], weight, prior, right, scale, share, _CG_STEPS)
        energy += float((force**2 / mass).sum())
        distance = energy**0.5
        if distance <= tolerance and barrier == BARRIER and solved:
            return Maximum(log_o + step_o if finish else log_o, iteration, "")
        if iteration == max_iter:
            break
        progress("fitting", iteration + 1, max_iter)
        state = log_o, log_r, barrier, multiplier, weight, force, mass
        reach, multiplier_reach = _compute_steps_blocks(cells, before, *state, step_o, step_r, step_multiplier)
        length = min(1.0, _TO_BOUND * reach)
        multiplier = multiplier + min(1.0, _TO_BOUND * multiplier_reach) * step_multiplier
        least = value - _ROUNDING * abs(value)
        while not (
            (value := linearise(log_o + length * step_o, log_r + length * step_r)) >= least + _ARMIJO * length * energy
        ):
            length *= _SHRINK
            if length < _SHORTEST:
                return Maximum(log_o, iteration, f"no step raises the likelihood, {describe_distance(distance)}")
        log_o, log_r = log_o + length * step_o, log_r + length * step_r
        share = min(_LOOSE, max(energy, _TIGHT))
        if length >= _LONG and barrier > BARRIER:
            barrier = max(BARRIER, barrier * _FALL)
            value = linearise(log_o, log_r)
    return Maximum(log_o, max_iter, f"stopped after {max_iter} steps, {describe_distance(distance)}")


def describe_distance(distance: float) -> str:
    """How far a search ended from the maximum, in words."""
    return f"{distance:.1g} standard errors from the maximum"

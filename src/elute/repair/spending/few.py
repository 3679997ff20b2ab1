"""A budget for few factors: grant by grant, with the covariance of log propensities at hand.

Candidates are ranked by what they take off the objective to first order; the best of them are compared by the objective
itself, and the winner is given the grant. Where no single one can take it, it is divided (`share`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.estimate.solve.resistance import Ground, WeightedCells, invert_grounded
from elute.identify.information import information
from elute.kernels.jit import jit
from elute.repair.spending.objective import POWER, Objective, compute_gradient, compute_norm
from elute.repair.spending.share import Offers, share_out, top_up
from elute.repair.spending.supply import Supply, measure_contrasts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

GRANTS = 50
_SHORTLIST = 64
_COLUMNS = 64
"""Variances, or random sums of them, by which candidates are ranked."""


def spend_on_few(
    supply: Supply, ground: Ground, dispersion: Floats, budget: int, objective: Objective, rng: np.random.Generator
) -> None:
    """Give out `budget`, as far as candidates can take it."""
    floor = dispersion * np.diagonal(invert_grounded(supply.imagine_all(budget), ground))
    covariance = invert_grounded(supply.get_cells(), ground)
    remaining, power = budget, POWER[objective]
    for grants in range(GRANTS, 0, -1):
        grant, cells = -(-remaining // grants), supply.get_cells()
        gradient = dispersion * compute_gradient(dispersion * np.diagonal(covariance), floor, power)
        which, total = supply.list_open()
        pairs = supply.node[which], supply.target[which]
        gain = measure_contrasts(*cells, *pairs, _take_columns(covariance, gradient, rng))
        resistance = 1 / total + _measure_spread(*cells, *pairs, covariance)
        odds, left = supply.odds[which], supply.left[which]
        added = np.minimum(left, grant) * odds
        worth = gain * added / (1 + added * resistance)
        best = np.argpartition(-worth, min(_SHORTLIST, len(worth) - 1))[:_SHORTLIST] if len(worth) else which
        best = np.sort(best[worth[best] > 0])
        if not len(best) or grant == 0:
            return
        if left[best[worth[best].argmax()]] >= grant:
            best = best[left[best] >= grant]
            change = _find_changes(supply, cells, covariance, which[best], total[best], grant)
            errors = np.sqrt(dispersion * np.maximum(np.diagonal(covariance) - change**2, 0.0))
            winner = compute_norm(errors, gradient > 0, power).argmin()
            covariance -= np.outer(change[winner], change[winner])
            supply.give(which[best[[winner]]], np.array([grant]))
            remaining -= grant
        else:
            offers = Offers(supply.target[which], gain, resistance, odds, left)
            shared = share_out(offers, grant, power)
            shared += top_up(offers.worth, left - shared, grant - int(shared.sum()))
            supply.give(which, shared)
            remaining -= int(shared.sum())
            covariance = invert_grounded(supply.get_cells(), ground)


def _take_columns(covariance: Floats, gradient: Floats, rng: np.random.Generator) -> Floats:
    """Columns whose squares add up to the sum of squares of those of V, weighted by `gradient`."""
    k = np.flatnonzero(gradient > 1e-6 * gradient.max(initial=0.0))
    columns = covariance[:, k] * np.sqrt(gradient[k])
    if len(k) > _COLUMNS:
        columns = columns @ (rng.integers(2, size=(len(k), _COLUMNS)) * 2.0 - 1.0) / np.sqrt(_COLUMNS)
    return np.ascontiguousarray(columns)


def _find_changes(
    supply: Supply, cells: WeightedCells, covariance: Floats, which: Ints, total: Floats, grant: int
) -> Floats:
    """By candidate a row h: given the grant, it changes V to V - h·hᵀ. A link c·z·zᵀ, z = e_t - m and c = δS/(δ + S),
    has h = g·√(c/(1 + c·zᵀg)), g = V·z (Sherman and Morrison)."""
    z = np.zeros((len(which), len(covariance)))
    for row, one in enumerate(which):
        own = slice(*cells.offsets[supply.node[one] : supply.node[one] + 2])
        z[row, cells.factor[own]] = -cells.w[own] / cells.w[own].sum()
        z[row, supply.target[one]] += 1
    given = supply.given[which]
    added = information(given + grant, supply.probability[which]) - information(given, supply.probability[which])
    c = added * total / (added + total)
    g = z @ covariance
    return np.asarray(np.sqrt(c / (1 + c * (z * g).sum(axis=1)))[:, None] * g)


@jit
def _measure_spread(offsets: Ints, factor: Codes, w: Floats, node: Ints, target: Ints, covariance: Floats) -> Floats:
    """zᵀVz by candidate."""
    out = np.empty(node.shape[0])
    for at in range(node.shape[0]):
        begin, end, t = offsets[node[at]], offsets[node[at] + 1], target[at]
        total = w[begin:end].sum()
        value = covariance[t, t]
        for a in range(begin, end):
            row, share = factor[a], w[a] / total
            value -= 2.0 * share * covariance[row, t]
            for b in range(begin, end):
                value += share * (w[b] / total) * covariance[row, factor[b]]
        out[at] = max(value, 0.0)
    return out

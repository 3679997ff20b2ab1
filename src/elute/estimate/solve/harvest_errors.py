"""Standard errors of harvested propensities, by the delta method.

Both ways of harvesting solve, to first order, K·dφ = Σ over links (e_k - e_k')·(b_k·dA(k, k') - b_k'·dA(k', k)) with
φ = log o and K = Σ stiffness·(e_k - e_k')(e_k - e_k')ᵀ. For chains of ratios the links are the tree's, b = 1/A and
the stiffness is 1. For all pairs, with p and q the click probabilities of a pair's two sides, u = W·p/(1-p) and
v = W·q/(1-q): b is v/((u+v)(1-p)) and u/((u+v)(1-q)), the stiffness u·v/(u+v); R is profiled out.

A cell enters all A of its item's other factors, so dφ = K⁻¹ Σ g·d(c/n) with one vector g a cell, and the cells are
independent binomials: the covariance of φ is K⁻¹ (Σ g gᵀ·p(1-p)/n) K⁻¹. The pairs are far from independent, so that
the information of the extremum estimator alone would claim too much. An item's own clicks enter both its relevance
and φ; their covariance is taken into account.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.estimate.solve.problem import Codes, Floats, Problem
from elute.estimate.solve.standard_errors import invert
from elute.identify.information import find_references
from elute.kernels.jit import jit

_MOST_WORK = 5e10
"""Σ (factors of an item)³ up to which errors are computed."""


class ComparedPairs(NamedTuple):
    """Pairs of factors that were compared: b of either side, and the stiffness."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    at_first: Floats
    at_second: Floats
    stiffness: Floats

    @classmethod
    def without_weight(cls, first: NDArray[np.int64], second: NDArray[np.int64]) -> Self:
        """Links that say nothing."""
        return cls(first, second, *np.zeros((3, len(first))))


def harvest_errors(
    problem: Problem, links: ComparedPairs, equal: bool, propensity: Floats, relevance: Floats
) -> tuple[Floats, Floats]:
    """log_se of every factor, against its component's largest propensity, and of every item.

    NaN where there is no estimate above 0, and for all where the items' factors are too many to go through."""
    n = problem.n_factors
    if float((np.diff(problem.cells.offsets).astype(np.float64) ** 3).sum()) > _MOST_WORK:
        return np.full(n, np.nan), np.full(problem.n_items, np.nan)
    known = propensity > 0
    free = np.flatnonzero(known & (find_references(propensity, problem.component) != np.arange(n)))
    inverse = np.zeros((n, n))
    inverse[np.ix_(free, free)] = _invert_stiffness(links, free, n)
    strength = np.zeros((n, n))
    strength[links.first, links.second], strength[links.second, links.first] = links.at_first, links.at_second
    given = (*problem.cells[:3], propensity, relevance, strength, equal)
    covariance = inverse @ _sum_noise(*given) @ inverse
    of_items = _item_variances(*given, inverse, covariance)
    of_factors = np.where(known, np.diagonal(covariance), np.nan)
    return np.sqrt(np.maximum(of_factors, 0.0)), np.sqrt(np.maximum(of_items, 0.0))


def _invert_stiffness(links: ComparedPairs, free: NDArray[np.int64], n: int) -> Floats:
    """Of K without the rows that are not free."""
    matrix = np.zeros((n, n))
    for a, b in ((links.first, links.second), (links.second, links.first)):
        np.add.at(matrix, (a, a), links.stiffness)
        np.subtract.at(matrix, (a, b), links.stiffness)
    return invert(matrix[np.ix_(free, free)])


@jit
def pair_weight(n: float, m: float, equal: bool) -> float:
    """What an item seen n and m times under two factors weighs."""
    return 1.0 if equal else n * m / (n + m)


@jit
def _rate_variance(n: float, p: float) -> float:
    """The variance of a click rate; p counts as at most n/(n+1). 0 where p is 0 or no number."""
    p = min(p, n / (n + 1.0))
    return p * (1.0 - p) / n if p > 0.0 else 0.0


@jit
def _fill_response(
    begin: int, end: int, cell: int, factor: Codes, impressions: Amounts, strength: Floats, equal: bool, out: Floats
) -> None:
    """g of a cell, over the cells of its item."""
    out[: end - begin] = 0.0
    for other in range(begin, end):
        b = strength[factor[cell], factor[other]]
        if other != cell and b > 0.0:
            b *= pair_weight(float(impressions[cell]), float(impressions[other]), equal)
            out[other - begin] -= b
            out[cell - begin] += b


@jit
def _sum_noise(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    propensity: Floats,
    relevance: Floats,
    strength: Floats,
    equal: bool,
) -> Floats:
    """Σ g gᵀ·p(1-p)/n over the cells."""
    out = np.zeros_like(strength)
    g = np.empty(propensity.shape[0])
    touched = np.empty(propensity.shape[0], np.int64)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        for cell in range(begin, end):
            spread = _rate_variance(float(impressions[cell]), relevance[item] * propensity[factor[cell]])
            if spread == 0.0:
                continue
            _fill_response(begin, end, cell, factor, impressions, strength, equal, g)
            n = 0
            for a in range(begin, end):
                if g[a - begin] != 0.0:
                    touched[n] = a
                    n += 1
            for i in range(n):
                a = touched[i]
                for j in range(n):
                    b = touched[j]
                    out[factor[a], factor[b]] += spread * g[a - begin] * g[b - begin]
    return out


@jit
def _item_variances(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    propensity: Floats,
    relevance: Floats,
    strength: Floats,
    equal: bool,
    inverse: Floats,
    covariance: Floats,
) -> Floats:
    """Of log r = log Σ c - log Σ n·o: that of the clicks, of φ weighted by n·o, and twice what they share."""
    out = np.full(offsets.shape[0] - 1, np.nan)
    g = np.empty(propensity.shape[0])
    for item in range(out.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        reach = 0.0
        for cell in range(begin, end):
            if propensity[factor[cell]] > 0.0:
                reach += impressions[cell] * propensity[factor[cell]]
        if not relevance[item] * reach > 0.0:
            continue
        total = 0.0
        pull = np.zeros(end - begin)
        for a in range(begin, end):
            if propensity[factor[a]] > 0.0:
                share = impressions[a] * propensity[factor[a]] / reach
                for b in range(begin, end):
                    pull[b - begin] += share * inverse[factor[a], factor[b]]
                    if propensity[factor[b]] > 0.0:
                        other = impressions[b] * propensity[factor[b]] / reach
                        total += share * covariance[factor[a], factor[b]] * other
        for cell in range(begin, end):
            n = float(impressions[cell])
            spread = _rate_variance(n, relevance[item] * propensity[factor[cell]])
            if spread > 0.0:
                _fill_response(begin, end, cell, factor, impressions, strength, equal, g)
                own = n / (relevance[item] * reach)
                total += spread * own * (own - 2.0 * (pull * g[: end - begin]).sum())
        out[item] = total
    return out

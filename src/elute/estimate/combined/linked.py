"""Propensities from links and from a score at once.

Clicks of an item are of two kinds of news. How they are shared among its factors tells ratios of propensities whatever
its relevance is: that is the graph's part, and it says nothing across components. How many they are in all tells how
seen the item's factors are, if relevance is h(score) on average: that is the score's part. With a relevance of
h(score)·ε, ε of mean 1 and variance v (a gamma variable), the two are independent, and their likelihoods multiply:

    Π_items multinomial(clicks by factor | their sum; n·o)  ·  Π_items negative binomial(their sum; Σ n·o·h(score), v)

So v weighs them: the less the score says of relevance, the more the links count. Where items alone know all ratios of a
component, these are taken from items and the score has a say in its scale only. Errors are from clusters of queries,
which takes in what the two parts have in common.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from elute.estimate.combined.graph import GraphFit, find_known, fit_graph
from elute.estimate.scored.conditional import RIDGE, add_up
from elute.estimate.scored.groups import one_hot, sum_by
from elute.estimate.scored.pooled import Pooled
from elute.estimate.scored.rows import ScoredRows
from elute.estimate.scored.spline import ScoreBins

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_STEPS, _TOLERANCE = 60, 1e-9
_LEAST = 1e-9
"""Of v: below it clicks are Poisson."""


class Linked(NamedTuple):
    """`log_o`: by factor, all at one scale; -inf without clicks. `covariance`: of them, up to a constant. `log_h`: by
    bin of scores. `variance`: v. `known`: by component, whether its ratios are those of items alone."""

    log_o: Floats
    log_h: Floats
    covariance: Floats
    variance: float
    known: NDArray[np.bool_]
    iterations: int
    converged: bool

    def errors(self, reference: int) -> Floats:
        """Standard errors of log(o / o of the reference), by factor."""
        own, with_it = np.diag(self.covariance), self.covariance[reference]
        return np.asarray(np.sqrt(np.maximum(own + own[reference] - 2 * with_it, 0.0)))


class _Sums(NamedTuple):
    """Clicks of each item at a score: rows (`unit`, `factor`) with impressions; by unit its clicks, spline and
    query."""

    unit: Codes
    factor: Codes
    shown: Floats
    clicks: Floats
    basis: Floats
    query: Codes


class _State(NamedTuple):
    """At some parameters: the log-likelihood, its slope and its information, by factor and by coefficient of h.
    `weight`: by unit and factor, of the expected clicks; `rest`: by unit, what its clicks add to the slope."""

    value: float
    slope: Floats
    information: Floats
    weight: sparse.csr_array
    rest: Floats


def fit_linked(rows: ScoredRows, bins: ScoreBins, pooled: Pooled, component: Codes, target: float) -> Linked:
    """The fit; `component`: by factor. `target`: the standard error at which a component knows its ratios."""
    clicked = add_up(rows.factor, rows.clicked, len(component)) > 0
    place = np.cumsum(clicked) - 1
    kept = clicked[rows.factor]
    some = rows._replace(
        **{name: getattr(rows, name)[kept] for name in ("query", "item", "whole", "score", "shown", "clicked")},
        factor=place[rows.factor[kept]],
    )
    found = _fit_clicked(
        some, bins._replace(bin=bins.bin[kept]), pooled.log_o[clicked], pooled, component[clicked], target
    )
    log_o, covariance = np.full(len(component), -np.inf), np.zeros((len(component),) * 2)
    log_o[clicked] = found.log_o
    covariance[np.ix_(clicked, clicked)] = found.covariance
    known = np.ones(int(component.max()) + 1, bool)
    known[: len(found.known)] = found.known
    return found._replace(log_o=log_o, covariance=covariance, known=known)


def _fit_clicked(
    rows: ScoredRows, bins: ScoreBins, start: Floats, pooled: Pooled, component: Codes, target: float
) -> Linked:
    factors, width = len(component), bins.basis.shape[1]
    graph, sums = fit_graph(rows, factors), _sum_units(rows, bins, factors)
    known = find_known(graph, component, rows, target)
    held = known[component]
    scale = np.where(held, factors + component, np.arange(factors))  # one parameter a factor, or a component
    free = one_hot(np.unique(scale, return_inverse=True)[1].reshape(-1), len(np.unique(scale))).toarray()
    fixed = np.where(held, graph.log_o, 0.0)
    v = _find_variance(sums, start, pooled.log_h[bins.bin], rows, bins)
    penalty = np.zeros((free.shape[1] + width,) * 2)
    penalty[-width:, -width:] = pooled.stiffness * bins.penalty
    penalty += RIDGE * np.eye(len(penalty))
    first = np.linalg.lstsq(bins.basis - bins.basis.mean(axis=0), pooled.log_h - pooled.log_h.mean(), rcond=None)[0]
    gamma = np.r_[np.linalg.lstsq(free, start - fixed, rcond=None)[0], first]
    state = _evaluate(graph, sums, free, fixed, v, gamma)
    value, steps, gain = state.value - 0.5 * gamma @ penalty @ gamma, 0, np.inf
    chart = _chart(free, width)
    while gain >= _TOLERANCE and steps < _STEPS:
        steps += 1
        slope = chart.T @ state.slope - penalty @ gamma
        move = np.linalg.solve(chart.T @ state.information @ chart + penalty, slope)
        gain, length = float(slope @ move), 1.0
        while True:
            tried = gamma + length * move
            then = _evaluate(graph, sums, free, fixed, v, tried)
            reached = then.value - 0.5 * tried @ penalty @ tried
            if reached >= value + 1e-4 * length * gain or length < 1e-6:
                break
            length /= 2
        gamma, state, value = tried, then, reached
    log_o, log_h = free @ gamma[:-width] + fixed, bins.basis @ gamma[-width:]
    apart = np.eye(factors) - (component[:, None] == component) / np.bincount(component)[component]
    through = apart @ np.where(held[:, None] & held, graph.inverse, 0.0) @ apart
    covariance = _find_covariance(graph, sums, log_o, state, chart, penalty, through)
    level = log_o.max()
    return Linked(log_o - level, log_h + level, covariance, v, known, steps, gain < 1e-6 * (1 + abs(value)))


def _chart(free: Floats, width: int) -> Floats:
    """From parameters to (log o, coefficients of h)."""
    out = np.zeros((len(free) + width, free.shape[1] + width))
    out[: len(free), : free.shape[1]] = free
    out[len(free) :, free.shape[1] :] = np.eye(width)
    return out


def _sum_units(rows: ScoredRows, bins: ScoreBins, factors: int) -> _Sums:
    """An item at a score is a unit."""
    size = len(bins.centre)
    (item, bin_, factor), shown, clicked = sum_by((rows.item, bins.bin, rows.factor), (size, factors), rows)
    each, first, unit = np.unique(item * size + bin_, return_index=True, return_inverse=True)
    unit = unit.reshape(-1)
    query = np.zeros(int(rows.item.max()) + 1, np.int64)
    query[rows.item] = rows.query
    return _Sums(unit, factor, shown, add_up(unit, clicked, len(each)), bins.basis[bin_[first]], query[item[first]])


def _find_variance(sums: _Sums, log_o: Floats, log_h: Floats, rows: ScoredRows, bins: ScoreBins) -> float:
    """v, by how much clicks of units vary beyond what chance alone does about what the score expects."""
    expected = rows.shown * np.exp(log_o[rows.factor] + log_h)
    unit = np.unique(rows.item * len(bins.centre) + bins.bin, return_inverse=True)[1].reshape(-1)
    mean = add_up(unit, expected, len(sums.clicks))
    chance = float((expected * np.maximum(1 - expected / rows.shown, 0)).sum())
    return max((float(((sums.clicks - mean) ** 2).sum()) - chance) / float((mean**2).sum()), _LEAST)


def _evaluate(graph: GraphFit, sums: _Sums, free: Floats, fixed: Floats, v: float, gamma: Floats) -> _State:
    factors, width = len(free), sums.basis.shape[1]
    log_o = free @ gamma[:-width] + fixed
    value, slope, information = graph.measure(log_o)
    reach = sums.shown * np.exp(log_o[sums.factor])
    total = add_up(sums.unit, reach)
    weight = sparse.csr_array((reach / total[sums.unit], (sums.unit, sums.factor)), (len(total), factors))
    eta = np.log(total) + sums.basis @ gamma[-width:]
    mean = np.exp(eta)
    value += float(sums.clicks @ eta - (sums.clicks + 1 / v) @ np.log1p(v * mean))
    rest, strength = (sums.clicks - mean) / (1 + v * mean), mean / (1 + v * mean)
    weighed = sparse.csr_array(sparse.diags_array(strength) @ weight)
    square = np.zeros((factors + width,) * 2)
    square[:factors, :factors] = information + (weight.T @ weighed).toarray()
    square[factors:, :factors] = sums.basis.T @ weighed
    square[:factors, factors:] = square[factors:, :factors].T
    square[factors:, factors:] = sums.basis.T @ (sums.basis * strength[:, None])
    return _State(value, np.r_[slope + weight.T @ rest, sums.basis.T @ rest], square, weight, rest)


def _find_covariance(
    graph: GraphFit, sums: _Sums, log_o: Floats, state: _State, chart: Floats, penalty: Floats, through: Floats
) -> Floats:
    """Of log o. What ratios have in error that are the graph's (the inverse of their information is `through`) moves
    all that was fitted to them."""
    factors, size, queries = len(log_o), len(state.slope), graph.queries
    belongs = sparse.csr_array((state.rest, (sums.query, np.arange(len(state.rest)))), (queries, len(state.rest)))
    between = [sparse.csr_array(belongs @ state.weight), sparse.csr_array(belongs @ sums.basis)]
    scores = sparse.hstack([graph.score(log_o), *between]).tocsr()
    entry = np.vstack([np.eye(factors, size), np.eye(size)])
    entry[:factors] -= through @ state.information[:factors]
    bread = np.linalg.inv(chart.T @ state.information @ chart + penalty)
    turned = entry @ chart @ bread @ chart[:factors].T
    turned[:factors] += through
    gram = (scores.T @ scores).toarray() * queries / max(queries - 1, 1)
    return np.asarray(turned.T @ gram @ turned)

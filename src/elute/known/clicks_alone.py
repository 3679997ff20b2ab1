"""A posterior of relevance from a table of clicks alone, where a model leaves none.

Session click models, and fits of older versions, have one figure an item. An item's clicks C are taken as Poisson with
mean r · E, where the exposure E is what makes the model's own figure the rate of clicks: C / relevance. Where there is
no click nothing tells the exposure; an impression is taken to count as much as it does among the items with clicks.
To count it in full would take items at the bottom of pages for such that were seen and passed over.

The population of relevances is a Gamma whose shape and rate maximise the likelihood of all clicks, r integrated out:

    p(C | E) ∝ Γ(a + C) / Γ(a) · b^a / (b + E)^(a + C)

and an item's posterior is Gamma(a + C, b + E). This takes the model's other parameters as known exactly, so items look
surer than they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]

SHAPES = (0.05, 100.0)
"""Bounds of the population's shape: beyond them, items are all alike, or nearly all without relevance."""

_MEANS = (1e-9, 1e9)
_ITEMS = 4_000
"""Items, evenly spaced by exposure and clicks, that the population is fitted to: more hardly move two figures."""


def infer_posteriors(clicks: Floats, relevance: Floats, impressions: Floats) -> tuple[Floats, Floats, Floats]:
    """By item `shape` and `rate`, NaN where there is no relevance; and last the population's two figures."""
    estimated = np.isfinite(relevance)
    exposure = _find_exposure(clicks, relevance, impressions)
    a, b = population = fit_population(clicks[estimated], exposure[estimated])
    shape, rate = (np.where(estimated, values, np.nan) for values in (a + clicks, b + exposure))
    return shape, rate, population


def _find_exposure(clicks: Floats, relevance: Floats, impressions: Floats) -> Floats:
    told = (relevance > 0) & (clicks > 0)
    exposure = np.divide(clicks, relevance, out=np.zeros_like(clicks), where=told)
    counts = exposure[told].sum() / impressions[told].sum() if told.any() else 1.0
    return np.where(told, exposure, impressions * counts)


def fit_population(clicks: Floats, exposure: Floats) -> Floats:
    """Shape and rate of the Gamma that the items' relevances come from."""
    from scipy.optimize import minimize  # slow to import

    order = np.lexsort((clicks, exposure))  # so that the order of the table changes nothing
    used = order[np.unique(np.linspace(0, max(len(order) - 1, 0), min(len(order), _ITEMS)).astype(np.int64))]
    c, e = clicks[used], exposure[used]
    mean = (c.sum() + 0.5) / (e.sum() + 1.0)

    def lose(at: Floats) -> float:
        a = np.exp(at[0])
        b = a / np.exp(at[1])
        likelihood = gammaln(a + c) - gammaln(a) + a * np.log(b) - (a + c) * np.log(b + e)
        return float(-likelihood.sum()) / max(len(c), 1)

    bounds = [tuple(np.log(SHAPES)), tuple(np.log(_MEANS))]
    found = minimize(lose, np.array([0.0, np.log(mean)]), method="L-BFGS-B", bounds=bounds)
    a, centre = np.exp(found.x)
    return np.array([a, a / centre])

"""A Beta prior on relevance, fitted to the log (empirical Bayes): what to say of items with a handful of clicks.

Relevance is a probability at the scale at which the largest propensity of its component is 1; there,
r ~ Beta(a, b) for every item, and a relevance is the posterior mean; (C + a)/(N + a + b) where all o are 1.
a and b maximise the marginal likelihood of the clicks. Both need integrals over r of the item's likelihood
r^C·Π(1 - r·o)^s, times the prior: in log odds the integrand is smooth, has one maximum and falls
exponentially on both sides, so the trapezoidal rule, marching out from the maximum, is good to five digits.

Propensities are fitted before, without this prior (`elute.estimate.solve.conditional`). They must be: the prior says
that items shown under a factor are a fair sample of all, which a ranker sees to it they are not, so it would
pull every factor's propensity towards its click rate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.blocks import map_chunks
from elute.kernels.equal_items import group_equal_items
from elute.kernels.jit import jit

SAMPLE = 2_000
"""Items, evenly spaced, that a and b are fitted to: two numbers need no more."""

_BOUNDS = (math.log(1e-2), math.log(1e5))
"""Of log a and log b: beyond, items are all 0 or 1, or all alike."""

_FIRST = 0.5
_LAST_EXCESS = 1e-4
_STEP = 0.4
"""Of the trapezoidal rule in log odds, times their standard deviation where that is below 1."""

_NEGLIGIBLE = -22.0
"""Log of the density over its maximum at which to stop."""

_MAX_STEPS = 100
_CHUNK, _CHUNKS = 20_000, 16
"""Items that are taken at a time, at most; chunks that few items are cut into."""


class Beta(NamedTuple):
    """The prior's parameters: as it were, a clicks and b impressions without one."""

    a: float
    b: float


class Posterior(NamedTuple):
    """By item: mean of r, variance of log r, and the log marginal likelihood of its clicks (`evidence`)."""

    mean: Floats
    log_variance: Floats
    evidence: Floats


def fit_beta(cells: Cells, o: Floats, items: NDArray[np.integer]) -> Beta:
    """The prior that makes the clicks of `items` likeliest; `o` is at most 1, and some of them have clicks."""
    from scipy.optimize import minimize  # slow to import

    chosen = items[np.unique(np.linspace(0, len(items) - 1, min(len(items), SAMPLE)).astype(np.int64))]
    rate = min(max(cells.clicks.sum() / (cells.impressions * o[cells.factor]).sum(), 1e-4), 0.9)
    first = np.log([_FIRST, _FIRST * (1.0 - rate) / rate])

    some, code = group_equal_items(*cells, chosen.astype(np.int64))
    times = np.bincount(code, minlength=len(some))

    def loss(at: Floats) -> float:
        return -float(times @ posterior(cells, o, Beta(*np.exp(at).tolist()), some).evidence)

    found = minimize(
        loss, first, method="Nelder-Mead", bounds=[_BOUNDS, _BOUNDS], options={"xatol": 1e-2, "fatol": 1e-2}
    )
    return Beta(*np.exp(found.x).tolist())


def posterior(cells: Cells, o: Floats, prior: Beta, items: NDArray[np.int64]) -> Posterior:
    """The posterior of some items' relevance, given propensities of at most 1."""
    size = min(_CHUNK, max(len(items) // _CHUNKS, 100))
    parts = map_chunks(lambda chunk: _posterior(*cells, o, *prior, chunk), items, size)
    return Posterior(*map(np.concatenate, zip(*parts, strict=True)))


@jit
def _posterior(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    o: Floats,
    a: float,
    b: float,
    items: NDArray[np.int64],
) -> tuple[Floats, Floats, Floats]:
    mean, log_variance, evidence = np.empty(items.shape[0]), np.empty(items.shape[0]), np.empty(items.shape[0])
    prior = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for i in range(items.shape[0]):
        begin, end = offsets[items[i]], offsets[items[i] + 1]
        under, n, c = o[factor[begin:end]], impressions[begin:end], clicks[begin:end]
        odds, step = _mode(under, n, c, a, b)
        top = _log_density(under, n, c, a, b, odds)
        mass = first = logs = squares = 0.0
        for side in (-1, 1):
            at = odds if side > 0 else odds - step
            while True:
                height = _log_density(under, n, c, a, b, at) - top
                share = math.exp(height)
                r = 1.0 / (1.0 + math.exp(-at))
                beyond = _log_expit(at) - _log_expit(odds)
                mass += share
                first += share * r
                logs += share * beyond
                squares += share * beyond * beyond
                if height < _NEGLIGIBLE:
                    break
                at += side * step
        mean[i] = first / mass
        log_variance[i] = squares / mass - (logs / mass) ** 2
        evidence[i] = prior + top + math.log(mass * step)
        for cell in range(len(n)):
            if c[cell] > 0 and under[cell] > 0.0:
                evidence[i] += c[cell] * math.log(under[cell])
    return mean, log_variance, evidence


@jit
def _mode(under: Floats, n: Amounts, c: Amounts, a: float, b: float) -> tuple[float, float]:
    """Where the density of log odds is highest, and a step that resolves it. Found as in `profile.fit_items`: the
    prior is one more cell, with propensity 1, a clicks and b impressions without one, which keeps r below 1."""
    wanted = a
    for cell in range(len(n)):
        wanted += c[cell]
    r = wanted / (wanted + b)
    for cell in range(len(n)):
        reach = under[cell] * (wanted + float(n[cell]) - float(c[cell]))
        if reach > 0.0:
            r = min(r, wanted / reach)
    curvature = wanted
    for _ in range(_MAX_STEPS):
        skipped = b * r / (1.0 - r)
        slope = skipped / (1.0 - r)
        for cell in range(len(n)):
            p = r * under[cell]
            part = (float(n[cell]) - float(c[cell])) * p / (1.0 - p)
            skipped += part
            slope += part / (1.0 - p)
        curvature = slope * (1.0 - r) ** 2
        excess = math.log(skipped / wanted)
        r *= math.exp(-max(excess, 0.0) * skipped / slope)
        if excess < _LAST_EXCESS:
            break
    return math.log(r / (1.0 - r)), min(_STEP, _STEP / math.sqrt(curvature))


@jit
def _log_density(under: Floats, n: Amounts, c: Amounts, a: float, b: float, odds: float) -> float:
    """Of log odds, but for constants. Cells under a factor of propensity 0 have no say."""
    log_r = _log_expit(odds)
    r = math.exp(log_r)
    value = a * log_r + b * (log_r - odds)
    for cell in range(len(n)):
        if under[cell] == 1.0:
            value += c[cell] * log_r + (float(n[cell]) - float(c[cell])) * (log_r - odds)
        elif under[cell] > 0.0:
            value += c[cell] * log_r + (float(n[cell]) - float(c[cell])) * math.log1p(-under[cell] * r)
    return value


@jit
def _log_expit(odds: float) -> float:
    """log r of log odds."""
    return -math.log1p(math.exp(-odds)) if odds > 0.0 else odds - math.log1p(math.exp(odds))

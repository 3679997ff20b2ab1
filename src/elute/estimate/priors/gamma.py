"""What is known of every item's relevance, as a Gamma distribution: few clicks, propensities with errors, and a prior
that knows where an item was shown.

Given propensities, an item of C clicks has exposure E = Σ n·o, the impressions it would have needed where all is seen,
and C is nearly Poisson with mean r·E. With r ~ Gamma(a, a/μ) the posterior is Gamma(a + C, a/μ + E): closed, also for
items never clicked.

- **The prior's mean μ depends on where the item was shown**, and must: a ranker sees to it that items far down are
  worse. One mean for all would have every item that nobody saw look average, and so reward the bottom of the page. The
  mean relevance under factor t is μ_t = c_t/(n_t·o_t); an item's μ is their mean over its impressions, times how much
  items of as many impressions (by powers of two) are clicked more or less than that says: what a ranker shows rarely is
  worse than what it shows often at the same place. The shape a is
  one for all: a prior says as much as `a` clicks do. It shows in how items of the same mean differ: two impressions
  of an item have clicks of covariance p·p'/a, so E (C - M)² = Σ n·p(1-p) + (M² - Σ n·p²)/a with p = μ·o, M = Σ n·p.
  Items shown once say nothing of it.
- **Clicks are binomial, not Poisson**: an item's C and E count κ = Σ n·p/(1-p) / Σ n·p times, which is the information
  that its impressions carry about log r, at its shrunk relevance.
- **They vary more than that** where the same users come again: both are divided by the log's dispersion.
- **Propensities have errors**: with weights m = n·o/E of an item's factors, Σ m·se bounds the error of log E. Its
  square is added to the variance of log r (`polygamma.widen`).

`evidence` is the share of what is known that is the item's own: E against the exposure in which an item of its factors
has a clicks on average, but one at least and three at most.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.estimate.priors.dispersion import measure_dispersion
from elute.estimate.priors.polygamma import widen
from elute.estimate.solve.problem import Codes, Floats, total_by_factor
from elute.estimate.solve.standard_errors import information
from elute.kernels.blocks import map_chunks
from elute.kernels.jit import jit

SAMPLE = 20_000
"""Items, evenly spaced, that the shape is fitted to."""

_SHAPES = 0.05, 200.0
"""Of a: from items that are nearly all or nothing to items that are nearly alike."""

_SIZES = 24
_ENOUGH = 3.0
"""Clicks, expected of an item as it was shown, that are evidence whatever the prior says."""

_ROUNDS = 8
_TOLD = 10
"""Impressions of a cell from which its clicks count as binomial."""

_BORROWED = 10.0
"""Clicks at the mean of its component with which a factor's mean relevance is steadied."""

_CHUNK = 200_000
"""Items whose posteriors are found at a time."""


class Population(NamedTuple):
    """The prior of all items. `shape`: what it says, in clicks; `mean`: of relevance by factor; `dispersion`: the
    variance of clicks over that of independent ones, at least 1; `sizes`: what to multiply the mean by, for items of 1,
    of 2 or 3, of 4 to 7 impressions, and so on."""

    shape: float
    mean: Floats
    dispersion: float
    sizes: Floats = np.ones(1)

    def overall(self, shown: Floats) -> tuple[float, float]:
        """Shape and rate at the mean over all impressions: what an item is compared with that is alone; `shown` by
        factor."""
        return self.shape, self.shape * float(shown.sum() / (self.mean * shown).sum())


class Knowledge(NamedTuple):
    """By item: the posterior of relevance, Gamma(`shape`, `rate`), and the share of it that is the item's own. NaN
    where clicks were made under a factor of unknown propensity."""

    shape: Floats
    rate: Floats
    evidence: Floats


def fit_population(
    cells: Cells, o: Floats, log_se: Floats, component: Codes, totals: tuple[Floats, Floats] | None = None
) -> Population:
    """The prior of these items; `o` and `log_se` by factor, NaN where unknown. `totals`: impressions and clicks by
    factor, where the items are a sample."""
    shown, clicked = totals or [total_by_factor(cells.factor, amounts, len(o)) for amounts in cells[2:]]
    mean = average_relevance(shown, clicked, o, log_se, component)
    every = len(cells.offsets) - 1
    chosen = np.unique(np.linspace(0, every - 1, min(every, SAMPLE)).astype(np.int64))
    sizes = _compare_sizes(*_gather(*cells, o, mean, np.zeros(len(o)), chosen))
    shape = 1.0 / _fit_spread(*_list_moments(*cells, o, mean, sizes, chosen))
    return Population(shape, mean, measure_dispersion(*cells, np.nan_to_num(o)), sizes)


def _compare_sizes(clicks: Floats, exposure: Floats, mean: Floats, _: Floats, shown: Floats) -> Floats:
    """Clicks over those expected by where items were shown, by powers of two of their impressions, steadied by a few
    clicks as expected."""
    group, known = _group_sizes(shown), np.isfinite(clicks)
    got, due = (np.bincount(group[known], part[known], _SIZES) for part in (clicks, mean * exposure))
    return np.asarray((got + _BORROWED) / (due + _BORROWED))


def _group_sizes(shown: Floats) -> NDArray[np.int64]:
    return np.minimum(np.log2(np.maximum(shown, 1.0)).astype(np.int64), _SIZES - 1)


def _expect(mean: Floats, shown: Floats, population: Population) -> Floats:
    """The prior's mean of items, by where and how often they were shown."""
    return mean if len(population.sizes) == 1 else mean * population.sizes[_group_sizes(shown)]


def _fit_spread(squares: Floats, noise: Floats, pairs: Floats) -> float:
    """1/a from E (C - M)² = noise + pairs/a: least squares, weighted by the inverse of their variance, which for rare
    clicks is V + 2V². One value of 1 with a standard error of 1 stands for what else is known of such logs."""
    spread = 1.0
    for _ in range(_ROUNDS):
        variance = noise + spread * pairs
        weight = pairs / np.maximum(variance + 2.0 * variance**2, np.finfo(float).tiny)
        spread = float((1.0 + weight @ (squares - noise)) / (1.0 + weight @ pairs))
        spread = min(max(spread, 1.0 / _SHAPES[1]), 1.0 / _SHAPES[0])
    return spread


def average_relevance(shown: Floats, clicked: Floats, o: Floats, log_se: Floats, component: Codes) -> Floats:
    """c/(n·o) of every factor, drawn towards its component's mean: by a few clicks, and as far as errors of o, not
    relevance, explain how the factors differ (in logarithms, τ²/(τ² + se²) of a difference stays)."""
    n = len(o)
    seen = np.where(o > 0, shown * np.nan_to_num(o), 0.0)
    parts = int(component.max(initial=0)) + 1
    total, reach = (np.bincount(component, np.where(seen > 0, part, 0.0), parts) for part in (clicked, seen))
    overall = (np.maximum(total, 0.5) / np.maximum(reach, 1.0))[component]
    own = (clicked + _BORROWED) / (seen + _BORROWED / overall)
    away, error = np.where(seen > 0, np.log(own / overall), 0.0), np.nan_to_num(log_se) ** 2
    weight = clicked / max(float(clicked.sum()), 1.0)
    between = max(float(weight @ away**2 - weight @ error), 0.0)
    kept = np.divide(between, between + error, out=np.ones(n), where=between + error > 0)
    return np.asarray(overall * np.exp(kept * away))


def know_items(
    cells: Cells, o: Floats, log_se: Floats, population: Population, items: NDArray[np.integer] | None = None
) -> Knowledge:
    """The posterior of some items, all by default; `o` and `log_se` by factor. A propensity without an error (NaN)
    counts as known."""
    chosen = np.arange(len(cells.offsets) - 1) if items is None else np.asarray(items, np.int64)
    parts = map_chunks(lambda some: _know_some(cells, o, np.nan_to_num(log_se), population, some), chosen, _CHUNK)
    return Knowledge(*map(np.concatenate, zip(*parts, strict=True)))


def _know_some(cells: Cells, o: Floats, log_se: Floats, population: Population, chosen: NDArray[np.int64]) -> Knowledge:
    clicks, exposure, average, spread, shown = _gather(*cells, o, population.mean, log_se, chosen)
    a, b = population.shape, population.shape / _expect(average, shown, population)
    weight = _binomial(*cells[:3], np.nan_to_num(o), (a + clicks) / (b + exposure), chosen) / population.dispersion
    shape, rate = a + weight * clicks, b + weight * exposure
    evidence = weight * exposure / (min(max(a, 1.0), _ENOUGH) / average + weight * exposure)
    widen(shape, rate, spread**2)
    return Knowledge(shape, rate, evidence)


def expect_items(cells: Cells, o: Floats, population: Population) -> Floats:
    """The prior's mean of every item: what is expected of it by where and how often it was shown, whatever its own
    clicks."""
    every = np.arange(len(cells.offsets) - 1)
    _, _, average, _, shown = _gather(*cells, o, population.mean, np.zeros(len(o)), every)
    return _expect(average, shown, population)


class CellInformation(NamedTuple):
    """Of every cell about log r + log o; a cell of few impressions cannot tell that it is always clicked, and counts as
    Poisson. `given`: for Poisson clicks given those of the item, C·n·o/E, whose score is
    that of the conditional likelihood; `expected`: n·p/(1-p), for binomial clicks at the item's shrunk relevance;
    `boost`: by how much that is more in all."""

    given: Floats
    expected: Floats
    boost: float


def weigh_cells(cells: Cells, o: Floats, population: Population) -> CellInformation:
    """What every cell says of propensities."""
    every, sizes = np.arange(len(cells.offsets) - 1), np.diff(cells.offsets)
    clicks, exposure, mean, _, shown = _gather(*cells, o, population.mean, np.zeros(len(o)), every)
    mean = _expect(mean, shown, population)
    clicks = np.nan_to_num(clicks)
    rate = np.divide(clicks, exposure, out=np.zeros_like(exposure), where=exposure > 0)
    seen = cells.impressions * np.nan_to_num(o)[cells.factor]
    shrunk = (population.shape + clicks) / (population.shape / mean + exposure)
    poisson = shrunk.repeat(sizes) * seen
    expected = information(*cells[:3], shrunk, np.nan_to_num(o))
    expected = np.where(cells.impressions < _TOLD, np.minimum(expected, poisson), expected)
    boost = float(expected.sum() / max(poisson.sum(), np.finfo(float).tiny))
    return CellInformation(rate.repeat(sizes) * seen, expected, max(boost, 1.0))


@jit
def _list_moments(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    o: Floats,
    mean: Floats,
    sizes: Floats,
    items: NDArray[np.int64],
) -> tuple[Floats, Floats, Floats]:
    """By item: (C - M)², Σ n·p(1-p) and M² - Σ n·p², over cells of known propensity."""
    n = items.shape[0]
    squares, noise, pairs = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        shown = mu = 0.0
        for cell in range(offsets[items[i]], offsets[items[i] + 1]):
            shown += impressions[cell]
            mu += impressions[cell] * mean[factor[cell]]
        mu *= sizes[min(int(math.log2(max(shown, 1.0))), len(sizes) - 1)] / shown
        total = expected = own = 0.0
        for cell in range(offsets[items[i]], offsets[items[i] + 1]):
            if o[factor[cell]] > 0.0:
                p = min(mu * o[factor[cell]], 0.95)
                total += clicks[cell]
                expected += impressions[cell] * p
                own += impressions[cell] * p * p
        squares[i], noise[i], pairs[i] = (total - expected) ** 2, expected - own, expected**2 - own
    return squares, noise, pairs


@jit
def _gather(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    o: Floats,
    mean: Floats,
    log_se: Floats,
    items: NDArray[np.int64],
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """By item: clicks (NaN where some were made under an unknown propensity), exposure, the prior's mean, a bound on
    the error of its log exposure, and impressions."""
    n = items.shape[0]
    total, reach, mu, spread, shows = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        shown = 0.0
        for cell in range(offsets[items[i]], offsets[items[i] + 1]):
            t = factor[cell]
            shown += impressions[cell]
            mu[i] += impressions[cell] * mean[t]
            total[i] += clicks[cell]
            if o[t] > 0.0:
                reach[i] += impressions[cell] * o[t]
                spread[i] += impressions[cell] * o[t] * log_se[t]
            elif clicks[cell] > 0:
                total[i] = math.nan
        mu[i] = mu[i] / shown if shown > 0.0 else mean[factor[offsets[items[i]]]]
        if reach[i] > 0.0:
            spread[i] /= reach[i]
        shows[i] = shown
    return total, reach, mu, spread, shows


@jit
def _binomial(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, o: Floats, r: Floats, items: NDArray[np.int64]
) -> Floats:
    """κ of every item; 1 for one without exposure."""
    out = np.ones(items.shape[0])
    for i in range(items.shape[0]):
        expected = 0.0
        carried = 0.0
        for cell in range(offsets[items[i]], offsets[items[i] + 1]):
            n = float(impressions[cell])
            p = min(r[i] * o[factor[cell]], n / (n + 1.0))
            if p > 0.0:
                expected += n * p
                carried += n * p / (1.0 - p)
        if expected > 0.0:
            out[i] = carried / expected
    return out

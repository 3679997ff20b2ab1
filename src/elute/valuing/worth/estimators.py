"""Relevance of every item, by each estimator, and how it answers to clicks and propensities.

All are linear in an item's clicks c_t once propensities are given: r = r₀ + Σ_t γ_t·c_t. With n the impressions, w the
weights 1/max(α, τ), S = Σ w·(c - n·β), Z = Σ w·α·n:

- `model`: the mean of the item's posterior, (a + κ·C)/(b + κ·E) (`elute.estimate.priors.gamma`);
- `ips`: S/n with τ = 0. Unbiased if α is right;
- `ips-clipped`: S/n. Weights are at most 1/τ; of r the share Z/n is left;
- `snips`: S/Z, self-normalised: unbiased whatever τ is;
- `dr`: r̃ + Σ w·(c - n·(α·r̃ + β))/n with r̃ of `model`: what clipping loses the model fills in. Without clipping it is
  `ips`, whatever the model says.

The derivatives by log α_t and β_t follow from these lines; docs/explain/value.md has them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.estimate.priors.gamma import expect_items, fit_population, know_items
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit
from elute.valuing.inputs.examination import Examination

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]

ASSUMPTIONS = {
    "model": "clicks are r·o, and relevance is spread as the fit's prior has it",
    "ips": "clicks are r·o, and every document was shown where it can be seen",
    "ips-clipped": "clicks are r·o; weights are cut off, so values are too small",
    "snips": "clicks are r·o",
    "dr": "clicks are r·o; where weights are cut off, relevance is as the fit's posterior has it",
    "dm-features": "relevance follows the ranker's score, for documents never shown as for those shown",
}
"""What each takes for granted."""

TOO_SMALL = frozenset({"ips-clipped"})
"""Those whose values are too small, so that they cannot show that a ranking loses."""

OF_ITEMS = ("model", "ips", "ips-clipped", "snips", "dr")
OF_AFFINE = ("ips", "ips-clipped", "snips")
"""Those that need no posterior, which trust bias leaves none."""

_PLAIN, _NORMALISED, _DOUBLE = range(3)
_KINDS = {"ips": _PLAIN, "ips-clipped": _PLAIN, "snips": _NORMALISED, "dr": _DOUBLE}

Clip = float | None
"""The least α that weights take; None: 1/√(the item's impressions)."""


class ItemPosterior(NamedTuple):
    """By item, at given propensities: Gamma(`shape`, `rate`), where rate = `prior` + κ·E, κ the `weight` of its clicks.
    `lean`: by cell, how the prior's mean leans on the mean relevance under its factor; sums to 1."""

    shape: Floats
    rate: Floats
    prior: Floats
    weight: Floats
    lean: Floats

    @property
    def mean(self) -> Floats:
        return self.shape / self.rate

    @property
    def variance(self) -> Floats:
        return self.shape / self.rate**2

    def take_word(self, factor: Floats) -> ItemPosterior:
        """With the prior's mean times `factor`, by item."""
        prior = self.prior / factor
        return self._replace(prior=prior, rate=self.rate - self.prior + prior)

    def slope(self, cells: Cells, alpha: Floats) -> Floats:
        """Of the mean by log α, by cell: E grows with α, and the prior's mean, which goes by the mean relevance
        c/(n·α) of the item's factors, falls."""
        sizes = np.diff(cells.offsets)
        mean, rate, prior, weight = (np.repeat(v, sizes) for v in (self.mean, self.rate, self.prior, self.weight))
        return np.asarray(-mean * (weight * cells.impressions * alpha[cells.factor] + prior * self.lean) / rate)


class Relevance(NamedTuple):
    """By item: `value`. By cell: `gain`, the derivative by its clicks; `by_alpha` and `by_beta`, those by its factor's
    log α and β; the last is empty where β is 0."""

    value: Floats
    gain: Floats
    by_alpha: Floats
    by_beta: Floats


def find_posterior(cells: Cells, seen: Examination) -> ItemPosterior:
    """Of a log, at these propensities: their errors come in by their derivatives, not here."""
    alpha, nothing = seen.usable, np.zeros(len(seen.alpha))
    component = np.maximum(seen.component, 0)
    population = fit_population(cells, alpha, np.nan_to_num(seen.log_se), component)
    shape, rate, _ = know_items(cells, alpha, nothing, population)
    prior = population.shape / expect_items(cells, alpha, population)
    return ItemPosterior(shape, rate, prior, *_split_rate(*cells[:3], alpha, population.mean, rate - prior))


def estimate(name: str, cells: Cells, seen: Examination, posterior: ItemPosterior | None, clip: Clip) -> Relevance:
    """The relevance of every item; NaN where its clicks cannot tell. `clip`: of those that clip."""
    if name == "model":
        if posterior is None:
            raise ValueError("the model's estimate needs posteriors")
        gain = np.repeat(posterior.weight / posterior.rate, np.diff(cells.offsets))
        return Relevance(posterior.mean, gain, posterior.slope(cells, seen.usable), np.empty(0))
    mean = own = slope = np.empty(0)
    if name == "dr" and posterior is not None:
        mean, own, slope = posterior.mean, posterior.weight / posterior.rate, posterior.slope(cells, seen.usable)
    least, kind = 0.0 if name == "ips" else math.nan if clip is None else clip, _KINDS[name]

    def weigh(items: slice, offsets: Offsets) -> tuple[Floats, Floats, Floats, Floats]:
        given = _of(mean, items), _of(own, items), slope
        return _weigh(offsets, *cells[1:], seen.usable, seen.beta, least, kind, seen.affine, *given)

    return Relevance(*map(np.concatenate, zip(*map_blocks(weigh, cells.offsets), strict=True)))


def _of(values: Floats, items: slice) -> Floats:
    return values[items] if len(values) else values


@jit
def _split_rate(
    offsets: Offsets, factor: Codes, impressions: Amounts, alpha: Floats, mean: Floats, evidence: Floats
) -> tuple[Floats, Floats]:
    """κ by item from κ·E, the `evidence`; by cell n·μ/Σ n·μ, with μ the mean relevance under its factor."""
    weight, lean = np.zeros(evidence.shape[0]), np.zeros(factor.shape[0])
    for item in range(evidence.shape[0]):
        exposure = 0.0
        around = 0.0
        for cell in range(offsets[item], offsets[item + 1]):
            exposure += impressions[cell] * alpha[factor[cell]]
            around += impressions[cell] * mean[factor[cell]]
        if exposure > 0.0:
            weight[item] = evidence[item] / exposure
        for cell in range(offsets[item], offsets[item + 1]):
            if around > 0.0:
                lean[cell] = impressions[cell] * mean[factor[cell]] / around
    return weight, lean


@jit
def _weigh(
    offsets: Offsets,
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    alpha: Floats,
    beta: Floats,
    clip: float,
    kind: int,
    affine: bool,
    model: Floats,
    own: Floats,
    slope: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    first, cells = offsets[0], offsets[-1] - offsets[0]
    value = np.full(offsets.shape[0] - 1, math.nan)
    gain, by_alpha, by_beta = np.zeros(cells), np.zeros(cells), np.zeros(cells if affine else 0)
    for item in range(value.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        shown = 0.0
        for cell in range(begin, end):
            if alpha[factor[cell]] > 0.0:
                shown += impressions[cell]
        if shown == 0.0:
            continue
        least = 1.0 / math.sqrt(shown) if math.isnan(clip) else clip
        total = 0.0
        reach = 0.0
        for cell in range(begin, end):
            t = factor[cell]
            if alpha[t] > 0.0:
                w = 1.0 / max(alpha[t], least)
                total += w * (clicks[cell] - impressions[cell] * beta[t])
                reach += w * alpha[t] * impressions[cell]
        per = reach if kind == _NORMALISED else shown
        left = 1.0 - reach / shown if kind == _DOUBLE else 0.0
        r = total / per + (left * model[item] if kind == _DOUBLE else 0.0)
        value[item] = r
        for cell in range(begin, end):
            t = factor[cell]
            if alpha[t] > 0.0:
                free = alpha[t] > least
                w = 1.0 / max(alpha[t], least)
                grown = 0.0 if free else w * alpha[t] * impressions[cell]
                shrunk = w * (clicks[cell] - impressions[cell] * beta[t]) if free else 0.0
                lost = r * grown if kind == _NORMALISED else model[item] * grown if kind == _DOUBLE else 0.0
                gain[cell - first] = w / per
                by_alpha[cell - first] = -(shrunk + lost) / per
                if kind == _DOUBLE:
                    gain[cell - first] += left * own[item]
                    by_alpha[cell - first] += left * slope[cell]
                if affine:
                    by_beta[cell - first] = -w * impressions[cell] / per
    return value, gain, by_alpha, by_beta

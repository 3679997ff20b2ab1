"""Clicks a page of several rankings by one estimator, with their covariance.

What was shown is valued by its own clicks, which need no model. By `model` it is valued by what the model expects, once
for each ranking, so that the two sides of a difference make the same mistakes.

`model` and `dr` take a ranking at its word: what it puts first is better, on the whole, than where it was shown says.
The prior's mean of its k-th documents is multiplied by their clicks over those expected. Without that, a posterior made
from few clicks holds a good ranking to be as bad as the one that was shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import sum_by_item
from elute.valuing.inputs.examination import Examination
from elute.valuing.inputs.exposure import Exposure
from elute.valuing.inputs.traffic import PageTraffic
from elute.valuing.worth.estimators import Clip, ItemPosterior, Relevance, estimate
from elute.valuing.worth.influence import JointValues, ValueSpread, measure_spread, measure_traffic

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

_ROUNDS = 4
_BORROWED = 10.0
"""Clicks, as expected, with which the word of a ranking is steadied."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What all estimators share. `posterior`: None of trust bias. `dispersion`: by how much clicks vary more than
    independent ones."""

    traffic: PageTraffic
    seen: Examination
    exposures: list[Exposure]
    posterior: ItemPosterior | None
    dispersion: float
    clip: Clip = None

    @cached_property
    def words(self) -> list[_Word]:
        """What each ranking says of items."""
        return [] if self.posterior is None else [_hear(one, self.posterior) for one in self.exposures]

    @cached_property
    def told(self) -> list[ItemPosterior]:
        """The posterior of items as each ranking has it."""
        posterior = self.posterior
        return [] if posterior is None else [posterior.take_word(word.factor[word.bin]) for word in self.words]


class Worth(NamedTuple):
    """Expected clicks a page over some queries: of what was shown first, then of each ranking; then, by `model`, of
    what was shown as each ranking has it. `base`: by ranking, which of these it is compared with. `by_query`: clicks
    expected on all pages of each query. `relevance`: by ranking, what the estimator has of items."""

    value: Floats
    covariance: Floats
    base: list[int]
    by_query: Floats
    relevance: list[Relevance]
    values: JointValues
    answer: Floats

    def contrast(self, row: int, base: int) -> tuple[float, float]:
        """The difference of two of the values, and its standard error."""
        c = self.covariance
        return float(self.value[row] - self.value[base]), float(
            np.sqrt(max(c[row, row] + c[base, base] - 2 * c[row, base], 0.0))
        )


class _Word(NamedTuple):
    """What a ranking says of items: `bin`, by item, its place in it; `factor` of the prior's mean, by bin; `due`, the
    clicks that it rests on, where each item's count for the share that the prior is `left`."""

    bin: Ints
    factor: Floats
    due: Floats
    left: Floats


def find_worth(name: str, setting: Setting, queries: Flags) -> Worth:
    """By one estimator, over these queries."""
    traffic, seen, posterior = setting.traffic, setting.seen, setting.posterior
    words, told = setting.words, setting.told
    informed = name in ("model", "dr")
    found = [estimate(name, traffic.cells, seen, one, setting.clip) for one in (told if informed else [posterior])]
    typical = np.mean([one.mean for one in told], axis=0) if told else found[0].value
    values, sums = collect(setting, found, queries)
    base = [0] * len(setting.exposures)
    if name == "model" and posterior is not None:
        values, sums, base = _expect_shown(setting, found, values, sums, queries)
    for row, (word, one) in enumerate(zip(words, told, strict=True) if informed else (), 1):
        for at in {row, base[row - 1]} - {0}:
            values.plain[at] += _answer_word(word, one, values.exposure[at], name, setting)
    spread = (
        _spread_model(values, told, typical, setting)
        if name == "model"
        else measure_spread(values, typical, traffic, seen, setting.dispersion)
    )
    whole = spread.clicks + measure_traffic(sums, spread.own, traffic, queries)
    n = traffic.pages[queries].sum()
    return Worth(sums[:, queries].sum(axis=1) / n, whole / n**2, base, sums, found, values, spread.answer)


def collect(setting: Setting, found: list[Relevance], queries: Flags) -> tuple[JointValues, Floats]:
    """The values as functions of clicks and propensities, and by query: of what was shown by its clicks."""
    traffic, seen = setting.traffic, setting.seen
    rows, items, factors = len(setting.exposures) + 1, queries[traffic.query], len(seen.alpha)
    which = np.minimum(np.maximum(np.arange(rows) - 1, 0), len(found) - 1)
    exposure, plain = np.zeros((rows, traffic.n_items)), np.zeros((rows, traffic.n_items))
    by_alpha, by_beta = np.zeros((rows, factors)), np.zeros((rows, factors))
    sums = np.zeros((rows, traffic.n_queries))
    plain[0], sums[0] = items, traffic.clicks
    for row, one in enumerate(setting.exposures, 1):
        of = found[which[row]]
        known = np.nan_to_num(of.value)
        exposure[row] = one.sum_by_item(seen.usable, queries)
        plain[row] = items & one.ranking.kept[traffic.query]
        by_alpha[row] = one.sum_by_factor(known, queries) * seen.usable + _weigh_slopes(
            of.by_alpha, exposure[row], traffic
        )
        if seen.affine:
            direct = one.sum_by_factor(np.ones(traffic.n_items), queries)
            by_beta[row] = direct + _weigh_slopes(of.by_beta, exposure[row], traffic)
        sums[row] = one.value_queries(known, seen.usable, seen.beta)
    return JointValues(exposure, np.stack([of.gain for of in found]), which, plain, by_alpha, by_beta), sums


def _expect_shown(
    setting: Setting, found: list[Relevance], values: JointValues, sums: Floats, queries: Flags
) -> tuple[JointValues, Floats, list[int]]:
    """With what the model expects of the pages shown, in place of their clicks: as the first ranking has it, and
    each."""
    traffic, seen = setting.traffic, setting.seen
    cells, rankings = traffic.cells, len(setting.exposures)
    sizes = np.diff(cells.offsets)
    seen_on = cells.impressions * seen.usable[cells.factor] * np.repeat(queries[traffic.query], sizes)
    exposure = np.asarray(
        np.bincount(np.repeat(np.arange(traffic.n_items), sizes), seen_on, traffic.n_items), np.float64
    )
    rows = [0, *range(rankings)]
    reach, slopes, expected = [], [], []
    for which in rows:
        of = found[which]
        direct = np.bincount(cells.factor, seen_on * np.repeat(np.nan_to_num(of.value), sizes), len(seen.alpha))
        reach.append(exposure)
        slopes.append(direct + _weigh_slopes(of.by_alpha, exposure, traffic))
        expected.append(np.bincount(traffic.query, exposure * np.nan_to_num(of.value), traffic.n_queries))
    for row in range(1, rankings + 1):  # queries that keep what was shown, as the model has it
        kept = values.plain[row] > 0
        values.exposure[row] += np.where(kept, exposure, 0.0)
        values.by_alpha[row] += _weigh_slopes(found[row - 1].by_alpha, np.where(kept, exposure, 0.0), traffic)
        moved = seen_on * np.repeat(np.nan_to_num(found[row - 1].value) * kept, sizes)
        values.by_alpha[row] += np.bincount(cells.factor, moved, len(seen.alpha))
        sums[row] = np.where(setting.exposures[row - 1].ranking.kept, expected[row], sums[row])
    whole = values._replace(
        exposure=np.concatenate((reach[:1], values.exposure[1:], reach[1:])),
        which=np.concatenate((values.which, np.arange(rankings))),
        plain=np.zeros((2 * rankings + 1, traffic.n_items)),
        by_alpha=np.concatenate((slopes[:1], values.by_alpha[1:], slopes[1:])),
        by_beta=np.zeros((2 * rankings + 1, len(seen.alpha))),
    )
    return whole, np.concatenate((expected[:1], sums[1:], expected[1:])), list(range(rankings + 1, 2 * rankings + 1))


def _spread_model(values: JointValues, told: list[ItemPosterior], typical: Floats, setting: Setting) -> ValueSpread:
    """Relevance varies as its posterior does; propensities, and what the rankings say, with the clicks."""
    moved = values._replace(exposure=np.zeros_like(values.exposure))
    spread = measure_spread(moved, typical, setting.traffic, setting.seen, setting.dispersion)
    deviation = np.sqrt(np.nan_to_num(np.stack([one.variance for one in told])))
    each = values.exposure * deviation[values.which]
    own = (each / setting.traffic.pages[setting.traffic.query]) @ each.T
    return spread._replace(clicks=spread.clicks + each @ each.T, own=spread.own + own)


def _hear(exposure: Exposure, posterior: ItemPosterior) -> _Word:
    """Clicks over those expected, of the items that a ranking puts at each place; the last bin is of all others. Each
    item counts as much as the prior does in its posterior: so it does in the likelihood of the factors."""
    traffic = exposure.traffic
    bins = np.full(traffic.n_items, traffic.widest)
    held = exposure.item >= 0
    bins[exposure.item[held]] = traffic.place[traffic.factor[held]]
    clicks = sum_by_item(traffic.cells.offsets, traffic.cells.clicks)
    known = np.isfinite(posterior.shape)
    shape = np.nanmin(posterior.shape - posterior.weight * clicks)  # the prior's, which is one for all
    own, expected = posterior.weight * clicks, (posterior.rate - posterior.prior) * shape / posterior.prior
    factor = np.ones(traffic.widest + 1)
    for _ in range(_ROUNDS):
        left = shape / (shape + expected * factor[bins])  # of the prior, in the posterior
        got, due = (np.bincount(bins[known], (left * part)[known], len(factor)) for part in (own, expected))
        factor = (got + _BORROWED) / (due + _BORROWED)
    return _Word(bins, factor, np.asarray(due + _BORROWED, np.float64), left)


def _answer_word(word: _Word, told: ItemPosterior, exposure: Floats, name: str, setting: Setting) -> Floats:
    """By item: what one of its clicks moves a value by, through what the ranking says of the items in its bin."""
    moved = exposure * np.nan_to_num(told.mean * told.prior / told.rate)
    if name == "dr":
        moved = moved * _find_left(setting)
    sums = np.bincount(word.bin, moved, len(word.factor)) / word.factor
    return np.asarray((sums / word.due)[word.bin] * np.nan_to_num(told.weight * word.left))


def _find_left(setting: Setting) -> Floats:
    """By item: the share that clipping leaves to the model, 1 - Z/n."""
    cells, alpha = setting.traffic.cells, setting.seen.usable[setting.traffic.cells.factor]
    item = np.repeat(np.arange(setting.traffic.n_items), np.diff(cells.offsets))
    shown = np.bincount(item, cells.impressions * (alpha > 0), setting.traffic.n_items)
    least = 1.0 / np.sqrt(np.maximum(shown, 1.0)) if setting.clip is None else np.full(len(shown), setting.clip)
    share = np.divide(alpha, np.maximum(alpha, least[item]), out=np.zeros(len(alpha)), where=alpha > 0)
    return np.asarray(1.0 - np.bincount(item, cells.impressions * share, len(shown)) / np.maximum(shown, 1.0))


def _weigh_slopes(slope: Floats, exposure: Floats, traffic: PageTraffic) -> Floats:
    """Σ over items of exposure times slope, by factor."""
    cells = traffic.cells
    moved = np.repeat(exposure, np.diff(cells.offsets)) * slope
    return np.bincount(cells.factor, moved, len(traffic.place)).astype(np.float64)

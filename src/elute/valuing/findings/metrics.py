"""DCG, nDCG and success of rankings, by draws from what is known of relevance and propensities.

These are no sums over clicks, so that the posterior is drawn from: relevance of every item (Gamma, `estimators`), log
propensities (normal, with their covariance), and pages (each with a weight that is an exponential draw, the Bayesian
bootstrap). An interval is the middle 95% of what the draws give; of a difference, of the differences.

On sparse logs the posterior leans on its prior, and its draws are off. Clicks a page are known without a prior too (the
`anchor`), and serve as a control: in every draw they are replaced by a draw of the anchor's, and each metric moves with
them, by its slope on clicks a page over the draws.

The discounts are the fit's own: how likely each place is looked at, over the first place's. With d_k for the k-th
place:

- `dcg`: Σ_k d_k·r_k over the first places;
- `ndcg`: that over the largest that the query's documents could have;
- `success`: the probability of a click at the first places, 1 - Π_k (1 - α_k·r_k).

Of what was shown, each place has the mean relevance of what stood there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.offsets import take_groups
from elute.kernels.jit import jit
from elute.valuing.inputs.exposure import KEPT
from elute.valuing.worth.contrasts import to_number
from elute.valuing.worth.estimators import ItemPosterior
from elute.valuing.worth.find import Setting, Worth
from elute.valuing.worth.influence import DENSE, find_covariance

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

METRICS = ("dcg", "ndcg", "success")
_AT_MOST = (math.inf, 1.0, 1.0)
DRAWS = 200
QUERIES = 1_000
"""At most, drawn by their pages."""

_ENDS = (0.025, 0.975)
_SEED = 0


class _Part(NamedTuple):
    """The items, cells and slots of some queries, numbered anew: draws then cost what these do, not what the log
    does."""

    items: Ints
    begin: Ints
    offsets: Ints
    cell: Ints
    factor: Codes
    impressions: Floats
    slots: Ints
    slot: Ints
    queries: Ints


def measure_metrics(
    setting: Setting, told: list[ItemPosterior], queries: Flags, at: int, anchor: Worth
) -> list[dict[str, Any]]:
    """The field `metrics` of what was shown and of each ranking; `told`: the posterior as each ranking has it. `at`:
    how many places count. `anchor`: clicks a page over these queries, by an estimator that needs no prior."""
    traffic = setting.traffic
    rng = np.random.default_rng(_SEED)
    chosen, count = _choose_queries(traffic.pages, queries, rng)
    part = _take_queries(setting, np.unique(chosen))
    number = np.searchsorted(part.queries, chosen)
    order = np.argsort(part.items)
    holds = [_renumber(one.item[part.slot], part.items, order) for one in setting.exposures]
    each = [_prepare(one, part) for one in told]
    draw = _draw_propensities(setting, rng)
    mine, shown = np.zeros((2, len(told), len(METRICS) + 1, DRAWS))
    at_item = number, part.begin, np.arange(len(part.items)), part.offsets, part.factor, part.impressions
    at_slot = part.slots, traffic.factor[part.slot], traffic.shown[part.slot]
    for turn in range(DRAWS):
        alpha, weight, luck = draw(), rng.standard_gamma(count), rng.bit_generator.random_raw()
        for row, (held, prepared) in enumerate(zip(holds, each, strict=True)):
            r = _draw_relevance(prepared, part, alpha, setting.seen.usable, np.random.default_rng(luck))
            found = _measure(*at_item, *at_slot, held, traffic.place, alpha, r, at, traffic.pages[part.queries], weight)
            mine[row, :, turn], shown[row, :, turn] = found
    out = []
    for row, (values, base) in enumerate(zip(mine, shown, strict=True)):
        pair = np.ix_((0, row + 1), (0, row + 1))
        clicks = rng.multivariate_normal(anchor.value[[0, row + 1]], anchor.covariance[pair], DRAWS, method="eigh").T
        base, values = _move_to(clicks, base, values)
        out += [_summarise(base, base)] * (row == 0) + [_summarise(values, base)]
    return out


def _move_to(clicks: Floats, base: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The metrics of what was shown and of a ranking, had each draw had these clicks a page."""
    apart = values - base
    spread = apart[-1] - apart[-1].mean()
    slope = apart[:-1] @ spread / max(spread @ spread, 1e-300)
    moved = (of[:-1] + np.outer(slope, own - of[-1]) for of, own in zip((base, values), clicks, strict=True))
    first, second = moved
    return first, second


def _take_queries(setting: Setting, queries: Ints) -> _Part:
    traffic = setting.traffic
    order = np.argsort(traffic.query, kind="stable")
    ends = np.searchsorted(traffic.query[order], np.arange(traffic.n_queries + 1))
    at, begin = take_groups(ends, queries)
    items = order[at]
    cell, offsets = take_groups(traffic.cells.offsets, items)
    slot, slots = take_groups(traffic.offsets, queries)
    amounts = traffic.cells.impressions[cell].astype(np.float64)
    return _Part(items, begin, offsets, cell, traffic.cells.factor[cell], amounts, slots, slot, queries)


def _renumber(item: Ints, items: Ints, order: Ints) -> Ints:
    """Items by their place in `items`; what is no item stays."""
    place = order[np.minimum(np.searchsorted(items, item, sorter=order), len(items) - 1)]
    return np.where(item >= 0, place, item)


def _prepare(posterior: ItemPosterior, part: _Part) -> tuple[Floats, Floats, Floats]:
    """The shape by item; by cell what its rate has of evidence and of the prior, at α of 1 and as it is."""
    sizes = np.diff(part.offsets)
    weight, prior = (np.repeat(values[part.items], sizes) for values in (posterior.weight, posterior.prior))
    return posterior.shape[part.items], weight * part.impressions, prior * posterior.lean[part.cell]


def _summarise(values: Floats, base: Floats) -> dict[str, Any]:
    out = {}
    for name, most, value, before in zip(METRICS, _AT_MOST, values, base, strict=True):
        apart = value - before
        low, high = np.clip(np.quantile(value, _ENDS), 0.0, most)
        down, up = np.quantile(apart, _ENDS)
        verdict = "better" if down > 0 else "worse" if up < 0 else "cannot tell"
        fields = {"value": value.mean().clip(0.0, most), "low": low, "high": high}
        fields |= {"difference": apart.mean(), "difference_low": down, "difference_high": up}
        out[name] = {key: to_number(float(value)) for key, value in fields.items()} | {"verdict": verdict}
    return out


def _choose_queries(pages: Floats, queries: Flags, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """All, each with its pages; of many some, drawn by their pages, that count as one page each."""
    own = np.flatnonzero(queries)
    if len(own) <= QUERIES:
        return own, pages[own]
    return np.sort(rng.choice(own, QUERIES, p=pages[own] / pages[own].sum())), np.ones(QUERIES)


def _draw_propensities(setting: Setting, rng: np.random.Generator) -> Callable[[], Floats]:
    """What draws α once more, by factor."""
    seen, posterior = setting.seen, setting.posterior
    if seen.errors == "none":
        return lambda: seen.usable
    groups = int(seen.group.max()) + 1
    if seen.errors == "this log" and groups <= DENSE and posterior is not None:
        covariance = find_covariance(np.nan_to_num(posterior.mean), setting.traffic.cells, seen)
        size, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(size, 0.0))
    else:
        first = np.unique(seen.group, return_index=True)[1]
        root = np.diag(np.nan_to_num(seen.log_se[first])) if groups <= DENSE else np.zeros((groups, 0))
    return lambda: seen.usable * np.exp((root @ rng.standard_normal(root.shape[1]))[seen.group])


def _draw_relevance(
    prepared: tuple[Floats, Floats, Floats], part: _Part, alpha: Floats, usable: Floats, rng: np.random.Generator
) -> Floats:
    """At these propensities: where they are larger, relevance is smaller. The same luck gives the same draw, whichever
    ranking is measured."""
    shape, evidence, prior = prepared
    grown = np.divide(alpha, usable, out=np.ones_like(alpha), where=usable > 0)
    rate = np.add.reduceat(evidence * alpha[part.factor] + prior * grown[part.factor], part.offsets[:-1])
    known = np.isfinite(shape) & (rate > 0)
    luck = rng.standard_gamma(np.where(known, shape, 1.0))
    return np.divide(luck, rate, out=np.zeros(len(shape)), where=known)


@jit
def _measure(
    chosen: Ints,
    begin: Ints,
    order: Ints,
    cells: Ints,
    cell_factor: Codes,
    impressions: Floats,
    offsets: Ints,
    factor: Codes,
    shown: Floats,
    holds: Ints,
    place: Codes,
    alpha: Floats,
    relevance: Floats,
    at: int,
    pages: Floats,
    weight: Floats,
) -> tuple[Floats, Floats]:
    """The three metrics and clicks a page, of a ranking and of what was shown, over the queries drawn."""
    mine, theirs, total = np.zeros(4), np.zeros(4), 0.0
    reach = np.zeros(at)
    stood, mean = np.zeros(place.shape[0]), np.zeros(place.shape[0])
    for number in range(chosen.shape[0]):
        query = chosen[number]
        first, last = offsets[query], offsets[query + 1]
        reach[:] = 0.0
        for slot in range(first, last):
            stood[factor[slot]] = mean[factor[slot]] = 0.0
            if place[factor[slot]] < at:
                reach[place[factor[slot]]] += shown[slot] * alpha[factor[slot]] / pages[query]
        items = order[begin[query] : begin[query + 1]]
        best = np.sort(relevance[items])[::-1]
        for item in items:
            for cell in range(cells[item], cells[item + 1]):
                stood[cell_factor[cell]] += impressions[cell]
                mean[cell_factor[cell]] += impressions[cell] * relevance[item]
        got = was = clicks = clicked = 0.0
        miss, missed = 1.0, 1.0
        for slot in range(first, last):
            t = factor[slot]
            share = shown[slot] / pages[query]
            r = relevance[holds[slot]] if holds[slot] >= 0 else mean[t] / stood[t] if holds[slot] == KEPT else 0.0
            p, q = alpha[t] * r, alpha[t] * mean[t] / stood[t]
            clicks += share * p
            clicked += share * q
            if place[t] < at:
                got += share * p
                was += share * q
                miss *= 1.0 - share * min(p, 1.0)
                missed *= 1.0 - share * min(q, 1.0)
        ideal = 0.0
        look = np.sort(reach)[::-1]
        for k in range(min(at, best.shape[0])):
            ideal += look[k] * best[k]
        first_look = max(reach.max(), 1e-12)
        for out, sums, none, every in ((mine, got, miss, clicks), (theirs, was, missed, clicked)):
            out[0] += weight[number] * sums / first_look
            out[1] += weight[number] * (sums / ideal if ideal > 0.0 else 1.0)
            out[2] += weight[number] * (1.0 - none)
            out[3] += weight[number] * every
        total += weight[number]
    return mine / total, theirs / total

"""All that is known of the scales of a log, as difference constraints on φ = log o.

| what | constraint |
|---|---|
| o ≤ 1 | φ(t) ≤ 0 |
| ratios by clicks | φ(t) - φ(reference) within ratio ± width, in each part (`elute.bounds.scales`) |
| r ≤ 1, all items of a factor | clicks there are at most o(t)·n(t): φ(t) ≥ log(L/n), L the least expected clicks |
| r ≤ 1, one item | L ≤ r·Σ n·o ≤ Σ n·o: φ(a) ≥ log L - log Σ n·o/o(a), the sum at its largest |
| never clicked | φ(t) ≤ φ(reference) + log u (`elute.bounds.limits`) |
| assumptions | φ(t') ≤ φ(t); φ(t) - scale within a given log ratio ± its error |

An item is measured by its *anchor* a: its factor where it has one, else the reference of its part. Its log relevance is
then within [low - φ(a), high - φ(a)]. What a single item was clicked is never a constraint, only its lower limit is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.bounds.assumptions import KnownRatios, Ordered
from elute.bounds.limits import SHARE, limit_clicks, limit_unclicked, widen_errors
from elute.bounds.paths import Arrows
from elute.bounds.scales import Scales
from elute.estimate.solve.problem import Floats
from elute.known.precision import Precision

Ints = NDArray[np.int64]

OBSERVED, RATIO, RATE, ITEM, UNCLICKED, GIVEN, ORDERED = range(7)
"""Kinds of constraints; `ORDERED` + k are those of the k-th assumption on order."""


class ItemLimits(NamedTuple):
    """By item: its anchor, and the limits of log relevance + φ(anchor), infinite where there is none."""

    anchor: Ints
    low: Floats
    high: Floats


class DifferenceSystem(NamedTuple):
    """Node 0 is φ = 0, node 1 + t is factor t, the scales of given ratios come last. `kind` of every arrow."""

    arrows: Arrows
    kind: Ints
    nodes: int
    items: ItemLimits


class _Unclicked(NamedTuple):
    """Pairs of a part and a factor outside that its items were shown under in vain: the limit of o(t)/o(reference), and
    by cell of the log the number of its pair, or -1."""

    part: Ints
    factor: Ints
    limit: Floats
    of_cell: Ints


def constrain(
    precision: Precision, scales: Scales, ordered: list[Ordered], given: KnownRatios | None
) -> DifferenceSystem:
    """Everything together. `ordered` and `given` are in rows of the log's factors."""
    problem, n = precision.sample.problem, precision.sample.problem.n_factors
    unclicked = _limit_unclicked(precision, scales)
    items = limit_items(precision, scales, unclicked)
    every, tied = np.arange(n), scales.tied & (scales.reference != np.arange(n))
    rate = _limit_rates(precision, SHARE / (n + len(unclicked.part)))
    parts: list[tuple[int, Ints, Ints, Floats]] = [
        (OBSERVED, np.full(n, -1), every, np.zeros(n)),
        (RATIO, scales.reference[tied], every[tied], (scales.ratio + scales.width)[tied]),
        (RATIO, every[tied], scales.reference[tied], (scales.width - scales.ratio)[tied]),
        (RATE, every, np.full(n, -1), -rate),
        (ITEM, every, np.full(n, -1), -_find_best(items, n)),
        (UNCLICKED, scales.references[unclicked.part], unclicked.factor, np.log(unclicked.limit)),
    ]
    merged, nodes = problem.merged.astype(np.int64), n + 1
    for k, one in enumerate(ordered):
        parts.append((ORDERED + k, merged[one.above], merged[one.below], np.zeros(len(one.below))))
    if given is not None:
        to, of = n + given.scale, merged[given.factor]
        width = widen_errors(given.log_se, scales.quantile)
        parts += [(GIVEN, to, of, given.log_o + width), (GIVEN, of, to, width - given.log_o)]
        nodes += int(given.scale.max()) + 1
    tail, head, weight = (np.concatenate([part[column] for part in parts]) for column in (1, 2, 3))
    kind = np.repeat([part[0] for part in parts], [len(part[1]) for part in parts])
    used = np.isfinite(weight) & (tail != head)
    return DifferenceSystem(Arrows(tail[used] + 1, head[used] + 1, weight[used]), kind[used], nodes, items)


def _limit_rates(precision: Precision, error: float) -> Floats:
    """By factor: a lower limit of its log propensity, from all clicks there."""
    sample, found = precision.sample, precision.dependence
    spread = np.maximum(precision.population.dispersion, 1.0 if found is None else found.effect)
    low = limit_clicks(sample.clicked, sample.shown, spread, error)[0]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(low / np.maximum(sample.shown, 1.0)))


def _limit_unclicked(precision: Precision, scales: Scales) -> _Unclicked:
    """Of factors that the clicked items of another part were shown under in vain, or that nobody ever clicked."""
    cells, n = precision.sample.problem.cells, precision.sample.problem.n_factors
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    inside = _find_inside(scales, item, cells.factor)
    shown = cells.impressions.astype(np.float64)
    with np.errstate(over="ignore"):
        most = np.bincount(
            item[inside],
            (shown * np.exp(scales.ratio + scales.width)[cells.factor])[inside],
            len(cells.offsets) - 1,
        )
    wanted = ~inside & (cells.clicks == 0) & (scales.items.clicks[item] > 0) & (most[item] > 0)
    key, code = np.unique(scales.item_part[item[wanted]] * n + cells.factor[wanted], return_inverse=True)
    of_cell = np.full(len(item), -1)
    of_cell[wanted] = code
    bound = -np.log(SHARE / (n + len(key))) * precision.population.dispersion
    reach = shown[wanted] / most[item[wanted]]
    limit = limit_unclicked(code, scales.items.clicks[item[wanted]], reach, len(key), bound)
    return _Unclicked(key // n, key % n, limit, of_cell)


def _find_inside(scales: Scales, item: Ints, factor: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Cells whose factor is measured by the reference of their item's part."""
    return np.asarray((scales.part[factor] == scales.item_part[item]) & scales.tied[factor])


def limit_items(precision: Precision, scales: Scales, unclicked: _Unclicked) -> ItemLimits:
    """Limits of every item's log relevance, by its anchor."""
    cells, items = precision.sample.problem.cells, len(precision.sample.problem.cells.offsets) - 1
    size = np.diff(cells.offsets)
    item = np.repeat(np.arange(items), size)
    inside, shown = _find_inside(scales, item, cells.factor), cells.impressions.astype(np.float64)
    outside = np.append(unclicked.limit, np.inf)[unclicked.of_cell]
    with np.errstate(over="ignore"):
        high, low = (np.exp(scales.ratio + sign * scales.width)[cells.factor] for sign in (1, -1))
    most = np.bincount(item, shown * np.where(inside, high, outside), items)
    least = np.bincount(item, shown * np.where(inside, low, 0.0), items)
    alone = size == 1
    anchor = np.where(alone, cells.factor[cells.offsets[:-1]], scales.references[scales.item_part]).astype(np.int64)
    most, least = (np.where(alone, scales.items.impressions, sums) for sums in (most, least))
    error = SHARE / 2 * scales.items.impressions / max(float(scales.items.impressions.sum()), 1.0)
    clicks = limit_clicks(*scales.items, precision.population.dispersion, error)
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest, highest = (np.log(clicks[0]) - np.log(most), np.log(clicks[1]) - np.log(least))
    return ItemLimits(anchor, np.nan_to_num(lowest, nan=-np.inf, neginf=-np.inf, posinf=-np.inf), highest)


def _find_best(items: ItemLimits, n: int) -> Floats:
    """By factor: the largest lower limit of its items, which their relevance, at most 1, leaves to the factor."""
    out = np.full(n, -np.inf)
    np.maximum.at(out, items.anchor, items.low)
    return out

"""Do bounds hold? In worlds of several components, the share of logs whose simultaneous region holds the truth.

The region holds the truth if the true φ = log o fulfils every constraint, and every item's true relevance lies within
its limits. That is stricter than each interval at once: intervals are what follows from the constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.bounds.assumptions import Assumptions
from elute.bounds.bounds import Bounds, find_bounds
from elute.bounds.constraints import ORDERED
from elute.cells.counts import Counts, Membership
from elute.known.precision import Precision, measure
from elute.known.sample import sample_counts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SLACK = 1e-9


class BoundedWorld(NamedTuple):
    """Cells (item, factor, impressions) with the query of every item and the truth; `factors`: the bias columns.
    `monotone`: whether log o does not rise with `position`."""

    item: Ints
    factor: Ints
    impressions: Ints
    query: Ints
    relevance: Floats
    propensity: Floats
    factors: pa.Table
    monotone: bool = True


class BoundsOutcome(NamedTuple):
    """Of `draws` logs: those whose region `held` the truth without an assumption; `held_monotone`, `contradicted`:
    those whose region did, and those where elute saw a contradiction, with log o assumed not to rise with position.
    `pairs` across components, those `ordered` without and with that assumption; `wrong`: those of both in the wrong
    order. `example`: what elute said of the first contradiction."""

    draws: int
    held: int
    held_monotone: int
    contradicted: int
    pairs: int
    ordered: int
    ordered_monotone: int
    wrong: int
    example: str | None


def sum_outcomes(parts: list[BoundsOutcome]) -> BoundsOutcome:
    """Of all logs of some parts."""
    draws, held, falling, contradicted, pairs, ordered, more, wrong = (
        sum(column) for column in zip(*(part[:8] for part in parts), strict=True)
    )
    example = next((part.example for part in parts if part.example), None)
    return BoundsOutcome(draws, held, falling, contradicted, pairs, ordered, more, wrong, example)


def build_pages(
    rng: np.random.Generator, queries: int, pages: int, blocks: list[list[int]], propensity: Floats, most: float = 1.0
) -> BoundedWorld:
    """Queries with three documents for every two places of a block; each page shows the block's documents in random
    order, so blocks are never mixed. `most`: the largest relevance; documents of earlier blocks are better."""
    cells: dict[tuple[int, int], int] = {}
    relevance: list[float] = []
    query: list[int] = []
    for q in range(queries):
        for number, places in enumerate(blocks):
            own = range(len(relevance), len(relevance) + max(1, len(places) * 3 // 2))
            relevance += (most * rng.beta(1.2, 1.5 + number, len(own))).tolist()
            query += [q] * len(own)
            for _ in range(pages):
                for place, x in zip(places, rng.permutation(own)[: len(places)], strict=False):
                    cells[int(x), place] = cells.get((int(x), place), 0) + 1
    keys = sorted(cells)
    item, factor = (np.array(column) for column in zip(*keys, strict=True))
    shown = np.unique(item)
    item = np.searchsorted(shown, item)
    amounts = np.array([cells[key] for key in keys])
    factors = pa.table({"position": np.arange(1, len(propensity) + 1)})
    truth = np.array(relevance)[shown], propensity
    falls = bool((np.diff(propensity) <= 0).all())
    return BoundedWorld(item, factor, amounts, np.array(query)[shown], *truth, factors, falls)


def build_contexts(rng: np.random.Generator, contexts: int, queries: int, pages: int) -> BoundedWorld:
    """Ten places in each of many contexts that share no document: a component for every context, or more."""
    one = [build_pages(rng, queries, pages, [[0, 1, 2, 3, 4]], np.arange(1.0, 6.0) ** -1) for _ in range(contexts)]
    first = np.cumsum([0, *(len(world.query) for world in one)])
    scale = rng.uniform(0.3, 1.0, contexts)
    factors = pa.table({"device": np.repeat(np.arange(contexts), 5), "position": np.tile(np.arange(1, 6), contexts)})
    return BoundedWorld(
        np.concatenate([world.item + at for world, at in zip(one, first, strict=False)]),
        np.concatenate([world.factor + 5 * number for number, world in enumerate(one)]),
        np.concatenate([world.impressions for world in one]),
        np.concatenate([world.query for world in one]),
        np.concatenate([world.relevance for world in one]),
        np.concatenate([number * world.propensity for number, world in zip(scale, one, strict=True)]),
        factors,
    )


_FALLING = np.arange(1.0, 11.0) ** -0.8
_RISING = np.where(np.arange(10) == 2, 0.95, _FALLING)

WORLDS: dict[str, Callable[[np.random.Generator], BoundedWorld]] = {
    "two blocks, many pages": lambda rng: build_pages(rng, 30, 300, [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]], _FALLING),
    "two blocks, few pages": lambda rng: build_pages(
        rng, 200, 3, [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]], _FALLING, most=0.4
    ),
    "every position alone": lambda rng: build_pages(rng, 60, 40, [[place] for place in range(10)], _FALLING),
    "shown once": lambda rng: build_pages(rng, 2000, 1, [[0, 1], [2, 3, 4], [5]], _FALLING, most=0.5),
    "twenty contexts": lambda rng: build_contexts(rng, 20, 10, 60),
    "hardly a click": lambda rng: build_pages(rng, 25, 4, [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]], _FALLING, most=0.15),
    "position 3 seen more than position 2": lambda rng: build_pages(
        rng, 30, 300, [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]], _RISING
    ),
}


def measure_coverage(world: BoundedWorld, draws: int, rng: np.random.Generator) -> BoundsOutcome:
    """Draw logs of a world, with the same pages shown and other clicks, and bound each."""
    totals, example = np.zeros(7, np.int64), None
    for _ in range(draws):
        known = measure(sample_counts(draw_clicks(world, rng), None), query="query_id")
        truth = _number_as(world, known)
        plain = find_bounds(known, Assumptions())
        falling = find_bounds(known, Assumptions(monotone=("position",)))
        example = example or falling.contradiction
        counted = [(0, 0, 0) if one.crossed is None else _count_wrong(one, truth) for one in (plain, falling)]
        totals += (
            _holds(plain, truth),
            falling.consistent and _holds(falling, truth),
            not falling.consistent,
            counted[0][0],
            counted[0][1],
            counted[1][1],
            counted[0][2] + counted[1][2],
        )
    held, falling_held, contradicted, pairs, ordered, more, wrong = totals.tolist()
    return BoundsOutcome(draws, held, falling_held, contradicted, pairs, ordered, more, wrong, example)


def _number_as(world: BoundedWorld, known: Precision) -> BoundedWorld:
    """The truth with items numbered as they are where a log was measured."""
    order = np.argsort(known.sample.position)
    return world._replace(query=world.query[order], relevance=world.relevance[order])


def draw_clicks(world: BoundedWorld, rng: np.random.Generator) -> Counts:
    """A log of the world."""
    items = len(world.query)
    p = world.relevance[world.item] * world.propensity[world.factor]
    clicks = rng.binomial(world.impressions, p)
    members = Membership(
        int(world.query.max()) + 1,
        world.query.astype(np.int32),
        np.arange(items, dtype=np.int32),
        np.bincount(world.item, world.impressions, items).astype(np.int64),
    )
    return Counts(
        np.searchsorted(world.item, np.arange(items + 1)).astype(np.int64),
        world.factor.astype(np.int32),
        world.impressions.astype(np.uint32),
        clicks.astype(np.uint32),
        world.factors,
        members,
        0.0,
        lambda: pa.table({"item": np.arange(items)}),
    )


def _holds(found: Bounds, world: BoundedWorld) -> bool:
    """Whether the truth fulfils every constraint, but for those that were assumed."""
    system, phi = found.found, np.append(0.0, np.log(world.propensity))
    measured = system.kind < ORDERED
    off = phi[system.arrows.head] - phi[system.arrows.tail] > system.arrows.weight + _SLACK
    at = np.log(world.relevance) + phi[1:][system.items.anchor]
    inside = (system.items.low <= at + _SLACK) & (at <= system.items.high + _SLACK)
    return bool(not off[measured].any() and inside.all())


def _count_wrong(found: Bounds, world: BoundedWorld) -> tuple[int, int, int]:
    """Pairs across components, those in order, and those in the wrong one; by what two intervals alone say."""
    crossed = found.crossed
    if crossed is None or not crossed.ordered:
        return (0 if crossed is None else crossed.pairs), 0, 0
    limits, part = found.found.items, found.scales.item_part
    distance = {
        int(a): np.log(found.relate(np.arange(len(found.scales.part)), int(a))[1]) for a in np.unique(limits.anchor)
    }
    wrong = ordered = 0
    for code in np.unique(world.query):
        rows = np.flatnonzero(world.query == code)
        x, y = (side.ravel() for side in np.meshgrid(rows, rows))
        x, y = x[part[x] != part[y]], y[part[x] != part[y]]
        most = limits.high[x] - limits.low[y]
        most += np.array([distance[int(a)][b] for a, b in zip(limits.anchor[x], limits.anchor[y], strict=True)])
        ordered += int((most < 0).sum())
        wrong += int(((most < 0) & (world.relevance[x] > world.relevance[y])).sum())
    if ordered != crossed.ordered:
        raise ValueError(f"{ordered} pairs in order by single intervals, {crossed.ordered} by all together")
    return crossed.pairs, crossed.ordered, wrong

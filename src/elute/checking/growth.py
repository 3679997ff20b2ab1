"""What more of the same log would give, and what less of it gives: errors and order, by its size.

Standard errors fall with the root of the impressions. Order is tried out on some queries. Of a smaller log: impressions
are dropped at random. Of a larger one: each item's relevance is drawn from its posterior, its further impressions are
clicked accordingly, and the posterior is formed anew. The same items are shown more often, nothing new: a log whose
items keep changing gains less in order than this says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from elute.cells.counts import Cells
from elute.checking.probability import Point
from elute.estimate.partitioned.items import select_items
from elute.estimate.priors.gamma import know_items
from elute.estimate.solve.problem import Floats
from elute.known.pairs import find_signs, order_items
from elute.known.precision import Precision
from elute.known.shares import draw_queries

FORWARD = (2.0, 4.0, 10.0)


class Stage(NamedTuple):
    """A log of `share` times the impressions."""

    share: float
    median_log_se: float | None
    largest_log_se: float | None
    queries_ordered_share: float | None
    pairs_right_share: float | None


def grow(precision: Precision, shares: tuple[float, ...], seed: int = 0) -> list[Stage]:
    """One stage for each share."""
    sample = precision.sample
    item, query = draw_queries(sample)
    some, where = np.unique(item, return_inverse=True)
    cells = select_items(sample.problem.cells, some)
    o = np.where(precision.apart, np.nan, precision.propensity)
    rng = np.random.default_rng(seed)
    population = precision.population
    now = know_items(cells, o, precision.log_se, population)
    component = sample.problem.item_component[item]
    out = []
    for share in shares:
        sized = cells if share == 1 else _thin(cells, share, rng) if share < 1 else _extend(cells, o, now, share, rng)
        error = precision.log_se / share**0.5
        shape, rate, evidence = (part[where] for part in know_items(sized, o, error, population))
        signs = find_signs(shape, rate, evidence, query, component)
        found = order_items(shape, rate, evidence, query, component, population.overall(sample.shown), signs)
        some_order = sample.members is not None and len(found.query) > 0
        out.append(
            Stage(
                share,
                _scale(precision.median_log_se, share),
                _scale(precision.largest_log_se, share),
                float(found.certain.mean()) if some_order else None,
                float(found.right.mean()) if some_order else None,
            )
        )
    return out


def _scale(error: float | None, share: float) -> float | None:
    return None if error is None else error / share**0.5


def _thin(cells: Cells, share: float, rng: np.random.Generator) -> Cells:
    """A random share of the impressions. Cells stay, some with none."""
    shown = rng.binomial(cells.impressions.astype(np.int64), share)
    clicked = rng.hypergeometric(
        cells.clicks.astype(np.int64), (cells.impressions - cells.clicks).astype(np.int64), shown
    )
    return Cells(cells.offsets, cells.factor, shown.astype(np.uint64), clicked.astype(np.uint64))


def _extend(
    cells: Cells, o: Floats, now: tuple[Floats, Floats, Floats], share: float, rng: np.random.Generator
) -> Cells:
    """More impressions, clicked as the posterior says."""
    shape, rate = (np.nan_to_num(part, nan=1.0) for part in now[:2])
    r = rng.gamma(shape, 1.0 / rate).repeat(np.diff(cells.offsets))
    p = np.clip(r * np.nan_to_num(o)[cells.factor], 0.0, 1.0)
    more = np.rint(cells.impressions * (share - 1.0)).astype(np.int64)
    return Cells(
        cells.offsets,
        cells.factor,
        (cells.impressions + more).astype(np.uint64),
        (cells.clicks + rng.binomial(more, p)).astype(np.uint64),
    )


def join_stages(curve: list[Point], stages: list[Stage] | None, impressions: int) -> list[dict[str, Any]]:
    """Points of the curve with what was measured of logs of their size; beyond the log itself, the latter alone."""
    known = {stage.share: stage._asdict() for stage in stages or ()}
    rows = [{**point._asdict(), **known.pop(point.share, {})} for point in curve]
    return rows + [{"impressions": stage["share"] * impressions, **stage} for stage in known.values()]

"""More worlds for `elute_reproduce.limits.study`, page by page: users who come again, and logs of few pages a query.

In all of them clicks are r·o on average over users, so r·o must not be rejected. A user comes `VISITS` times with the
same query, and has tastes that last:

- 'activity': all a user's click probabilities are multiplied by one number, uniform between 0 and 2;
- 'own tastes': an item is relevant to a user or not, at all visits, and relevant to the share r of users.

A user's pages have nearly the same order at all visits. So an item stays near its place for a user, and clicks that
depend on each other fall into the same cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.assumptions.draws.clusters import Clusters, make_clusters
from elute.cells.counts import Clustered, Counts
from elute.estimate.solve.problem import Floats

VISITS, WIDTH = 5, 6
"""Visits of a user; results of a page."""

QUERIES, USERS = 6, 150
"""Of worlds of users who come again; users of each query."""

SPARSE_QUERIES, SPARSE_PAGES, SPARSE_WIDTH = 400, 8, 10
"""Of the sparse world: queries, pages of each, and results of a page."""

_HIGHEST = {"activity": 0.5, "own tastes": 0.9}
"""Of relevance: activity may double it."""

_SPREAD = 0.1
"""Of scores on a user's pages from visit to visit, as a share of that between users."""


class VisitedLog(NamedTuple):
    """Counts, users as clusters, and true relevance by item."""

    counts: Counts
    clusters: Clusters
    relevance: Floats


def draw_visits(world: str, rng: np.random.Generator, offset: float = 0.0) -> VisitedLog:
    """A log of users who come again, with 'activity' or 'own tastes'. `offset`: P(click) at the first place is
    r·o + offset·(1 - r·o): trust bias."""
    r = rng.uniform(0.05, _HIGHEST[world], (QUERIES, WIDTH))
    if world == "activity":
        own = r[:, None] * rng.uniform(0.0, 2.0, (QUERIES, USERS, 1))
    else:
        own = (rng.random((QUERIES, USERS, WIDTH)) < r[:, None]).astype(np.float64)
    habit = rng.random((QUERIES, USERS, 1, WIDTH)) + _SPREAD * rng.random((QUERIES, USERS, VISITS, WIDTH))
    order = np.argsort(habit, axis=3)
    o = 1 / np.arange(1, WIDTH + 1)
    p = np.take_along_axis(np.broadcast_to(own[:, :, None], order.shape), order, 3) * o
    p[..., 0] += offset * (1 - p[..., 0])
    clicks = rng.random(p.shape) < p
    item = np.arange(QUERIES)[:, None, None, None] * WIDTH + order
    user = np.broadcast_to(np.arange(QUERIES * USERS).reshape(QUERIES, USERS, 1, 1), order.shape)
    factor = np.broadcast_to(np.arange(WIDTH), order.shape)
    return _make_log(item.ravel(), factor.ravel(), user.ravel(), clicks.ravel(), r.ravel(), WIDTH)


def draw_sparse(rng: np.random.Generator) -> VisitedLog:
    """A log of few pages a query, in a noisy order of relevance; every page is a user's own."""
    r = rng.choice([0.1, 0.325, 0.55, 0.775, 1.0], p=[0.4, 0.25, 0.2, 0.1, 0.05], size=(SPARSE_QUERIES, SPARSE_WIDTH))
    score = r + rng.normal(0.0, 0.3, r.shape)
    noise = rng.gumbel(0.0, 0.2, (SPARSE_QUERIES, SPARSE_PAGES, SPARSE_WIDTH))
    order = np.argsort(-(score[:, None] + noise), axis=2)
    p = np.take_along_axis(np.broadcast_to(r[:, None], order.shape), order, 2) / np.arange(1, SPARSE_WIDTH + 1)
    clicks = rng.random(p.shape) < p
    item = np.arange(SPARSE_QUERIES)[:, None, None] * SPARSE_WIDTH + order
    page = np.broadcast_to(np.arange(SPARSE_QUERIES * SPARSE_PAGES).reshape(*order.shape[:2], 1), order.shape)
    factor = np.broadcast_to(np.arange(SPARSE_WIDTH), order.shape)
    return _make_log(item.ravel(), factor.ravel(), page.ravel(), clicks.ravel(), r.ravel(), SPARSE_WIDTH)


def _make_log(
    item: NDArray[np.int64],
    factor: NDArray[np.int64],
    user: NDArray[np.int64],
    clicks: NDArray[np.bool_],
    relevance: Floats,
    width: int,
) -> VisitedLog:
    """Cells, and cells by user."""
    key, row = np.unique((user * len(relevance) + item) * width + factor, return_inverse=True)
    shown, clicked = np.bincount(row), np.bincount(row, clicks).astype(np.int64)
    cells, cell = np.unique(key % (len(relevance) * width), return_inverse=True)
    impressions, all_clicks = (np.bincount(cell, part).astype(np.uint32) for part in (shown, clicked))
    offsets = np.searchsorted(cells // width, np.arange(len(relevance) + 1)).astype(np.int64)
    names, items = pa.table({"position": np.arange(1, width + 1)}), pa.table({"item": np.arange(len(relevance))})
    factors = (cells % width).astype(np.int32)
    counts = Counts(offsets, factors, impressions, all_clicks, names, None, 0.0, lambda: items)
    rows = Clustered(key // (len(relevance) * width), cells[cell] // width, cells[cell] % width, shown, clicked)
    return VisitedLog(counts, make_clusters("user", rows), relevance)

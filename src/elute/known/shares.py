"""What is known of items and queries, from some of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.estimate.priors.gamma import Population, know_items
from elute.estimate.solve.problem import Floats
from elute.known.pairs import Order, find_signs, order_items
from elute.known.sample import Sample

QUERIES, ITEMS = 2_000, 40_000
"""Queries and items, at most, whose order is looked at: shares of them are within 2 points with 95% confidence."""

_SEED = 0


class Shares(NamedTuple):
    """What is known of items and queries, from as many as were sampled; None where the log has no queries."""

    items_known: float
    items_sampled: int
    queries_ordered: float | None
    pairs_right: float | None
    queries_sampled: int


def measure_order(sample: Sample, o: Floats, log_se: Floats, population: Population) -> Shares:
    """Of some queries, or of some items where there are none. `log_se`: of the propensities at hand, which those of a
    sample are less sure than."""
    chosen, query = draw_queries(sample)
    know = know_items(sample.problem.cells, o, log_se, population, chosen)
    component = sample.problem.item_component[chosen]
    signs = find_signs(*know, query, component)
    found: Order = order_items(*know, query, component, population.overall(sample.shown), signs)
    some = len(found.query) > 0
    return Shares(
        items_known=float(found.known.mean()),
        items_sampled=len(chosen),
        queries_ordered=float(found.certain.mean()) if some else None,
        pairs_right=float(found.right.mean()) if some else None,
        queries_sampled=len(found.query),
    )


def draw_queries(sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items, and the query of each, of as many queries as are looked at; items alone where queries are not known."""
    rng, every = np.random.default_rng(_SEED), np.flatnonzero(sample.fair)
    item, query = sample.members or (every, every)
    if not sample.fair.all():
        item, query = item[sample.fair[item]], query[sample.fair[item]]
    codes, sizes = np.unique(query, return_counts=True)
    drawn = rng.permutation(len(codes))[: ITEMS if sample.members is None else QUERIES]
    drawn = drawn[: max(1, int(np.searchsorted(np.cumsum(sizes[drawn]), ITEMS)))]
    rows = np.flatnonzero(np.isin(query, codes[drawn]))
    return item[rows], query[rows]

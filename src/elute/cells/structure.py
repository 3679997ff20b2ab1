"""What a check needs to know of the cells. Small: nothing here is as long as the items, so that an engine which
holds a log of any size can answer with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.kernels.unionfind import find_roots, link_cells, singletons


@dataclass(frozen=True, eq=False)
class Structure:
    """The log's own components, and how much lies in each."""

    root: NDArray[np.int32]
    """For every factor the smallest factor of its component."""
    items_under: NDArray[np.int64]
    """By factor: items shown under it, which is its cells."""
    items_in: NDArray[np.int64]
    """By factor: for the smallest of a component the component's items, for others 0."""
    items_once: int
    """Items that were shown only once."""
    queries: int | None
    """None where the log has none."""
    busiest: int
    """Impressions of the query that has most; 0 without queries."""
    collision_bound: float
    """Upper bound on the probability that two different items share a code; 0 where codes are exact."""

    @property
    def items(self) -> int:
        return int(self.items_in.sum())

    @property
    def cells(self) -> int:
        return int(self.items_under.sum())


def connect(counts: Counts, group: NDArray[np.int32]) -> NDArray[np.int32]:
    """Roots of the graph over groups of factors; `group` gives each factor's, numbered without gaps."""
    parent = singletons(int(group.max()) + 1)
    link_cells(parent, counts.offsets, counts.factor, group)
    return find_roots(parent)


def structure_from_counts(counts: Counts) -> Structure:
    """The structure of cells in memory."""
    n = counts.n_factors
    root = connect(counts, np.arange(n, dtype=np.int32))
    members = counts.membership
    busiest = 0 if members is None else int(np.bincount(members.query, weights=members.impressions).max())
    return Structure(
        root=root,
        items_under=np.bincount(counts.factor, minlength=n),
        items_in=np.bincount(root[counts.factor[counts.offsets[:-1]]], minlength=n),
        items_once=int(np.count_nonzero(counts.item_impressions == 1)),
        queries=None if members is None else members.queries,
        busiest=busiest,
        collision_bound=counts.collision_bound,
    )

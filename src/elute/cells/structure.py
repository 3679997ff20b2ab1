"""What a check needs to know of the cells. Small: nothing here is as long as the items, so that an engine which
holds a log of any size can answer with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.kernels.blocks import map_blocks
from elute.kernels.forest import connect_cells


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
    return connect_cells(counts.offsets, counts.factor, group)


def structure_from_counts(counts: Counts) -> Structure:
    """The structure of cells in memory."""
    n = counts.n_factors
    root = connect(counts, np.arange(n, dtype=np.int32))
    members = counts.membership
    busiest = 0 if members is None else int(np.bincount(members.query, weights=members.impressions).max())

    def tally(items: slice, own: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Items under each factor, items of each tree, and those shown once."""
        under = np.bincount(counts.factor[own[0] : own[-1]], minlength=n)
        inside = np.bincount(root[counts.factor[own[:-1]]], minlength=n)
        alone = own[:-1][np.diff(own) == 1]
        return under, inside, int(np.count_nonzero(counts.impressions[alone] == 1))

    tallies = map_blocks(tally, counts.offsets)
    return Structure(
        root=root,
        items_under=np.sum([under for under, _, _ in tallies], axis=0),
        items_in=np.sum([inside for _, inside, _ in tallies], axis=0),
        items_once=sum(once for _, _, once in tallies),
        queries=None if members is None else members.queries,
        busiest=busiest,
        collision_bound=counts.collision_bound,
    )

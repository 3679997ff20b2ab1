"""What a check needs to know of the cells. Small: nothing here is as long as the items, so that an engine which
holds a log of any size can answer with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Counts
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit


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


def structure_from_counts(counts: Counts) -> Structure:
    """The structure of cells in memory."""
    root, members = counts.root, counts.membership
    tallies = map_blocks(lambda _, own: _tally(own, counts.factor, counts.impressions, root), counts.offsets)
    return Structure(
        root=root,
        items_under=np.sum([under for under, _, _ in tallies], axis=0),
        items_in=np.sum([inside for _, inside, _ in tallies], axis=0),
        items_once=sum(once for _, _, once in tallies),
        queries=None if members is None else members.queries,
        busiest=0 if members is None else int(_sum_by_query(members.query, members.impressions, members.queries).max()),
        collision_bound=counts.collision_bound,
    )


@jit
def _tally(
    offsets: NDArray[np.int64], factor: NDArray[np.int32], impressions: Amounts, root: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """By factor, items under it and items of the tree that it is the smallest of; and items that were shown once."""
    under, inside, once = np.zeros(root.shape[0], np.int64), np.zeros(root.shape[0], np.int64), 0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        inside[root[factor[begin]]] += 1
        once += end - begin == 1 and impressions[begin] == 1
        for cell in range(begin, end):
            under[factor[cell]] += 1
    return under, inside, once


@jit
def _sum_by_query(query: NDArray[np.int32], amounts: NDArray[np.int64], queries: int) -> NDArray[np.int64]:
    out = np.zeros(queries, np.int64)
    for at in range(query.shape[0]):
        out[query[at]] += amounts[at]
    return out

"""Connected components of the identifiability graph (Theorem 1 of the identifiability paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elute.counts import Counts
from elute.kernels.unionfind import link, link_cells, roots, singletons


@dataclass(frozen=True, eq=False)
class Components:
    """Components numbered from 0: most factors first, then most impressions, then smallest factor."""

    of_factor: NDArray[np.int32]
    factors: NDArray[np.int64]
    """By component: how many factors it has."""
    impressions: NDArray[np.int64]
    """By component."""

    def __len__(self) -> int:
        return len(self.factors)

    def of_items(self, counts: Counts) -> NDArray[np.int32]:
        """The component of every item; all factors of an item lie in one."""
        return self.of_factor[counts.factor[counts.offsets[:-1]]]


class Links(Protocol):
    """Something that links factors beyond what the log does: a repair plan."""

    @property
    def method(self) -> str:
        """What it is called."""

    def pairs_of(self, counts: Counts) -> NDArray[np.int64]:
        """The linked factors, two codes a row."""


def components(counts: Counts, impressions: NDArray[np.int64], plan: Links | None = None) -> Components:
    """Components of the factors of `counts`, with what a plan links; `impressions` is by factor."""
    root = connect(counts, np.arange(counts.n_factors, dtype=np.int32))
    if plan is not None:
        for a, b in plan.pairs_of(counts).tolist():
            link(root, a, b)
        root = roots(root)
    return order(root, impressions)


def connect(counts: Counts, group: NDArray[np.int32]) -> NDArray[np.int32]:
    """Roots of the graph over groups of factors; `group` gives each factor's, numbered without gaps."""
    parent = singletons(int(group.max()) + 1)
    link_cells(parent, counts.offsets, counts.factor, group)
    return roots(parent)


def order(root: NDArray[np.int32], impressions: NDArray[np.int64]) -> Components:
    """Number the components that `root` (the smallest factor of each factor's component) describes."""
    smallest, member = np.unique(root, return_inverse=True)
    factors = np.bincount(member)
    shown = np.zeros(len(smallest), np.int64)
    np.add.at(shown, member, impressions)
    rank = np.lexsort((smallest, -shown, -factors))
    number = np.empty(len(rank), np.int32)
    number[rank] = np.arange(len(rank))
    return Components(number[member], factors[rank].astype(np.int64), shown[rank])

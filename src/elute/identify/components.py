"""Connected components of the identifiability graph (Theorem 1 of the identifiability paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.identify.assumed import AssumedScore
from elute.identify.effects.classes import join_classes
from elute.identify.merged import MergedFactors
from elute.kernels.unionfind import find_roots, link


@dataclass(frozen=True, eq=False)
class Components:
    """Components numbered from 0: most factors first, then most impressions, then smallest factor. Where a formula ties
    factors, what counts as one is a class: factors whose ratios the log determines under it."""

    of_factor: NDArray[np.int32]
    factors: NDArray[np.int64]
    """By component: how many factors it has."""
    impressions: NDArray[np.int64]
    """By component."""

    def __len__(self) -> int:
        return len(self.factors)


class LinkingPlan(Protocol):
    """Something that links factors beyond what the log does: a repair plan."""

    @property
    def method(self) -> str:
        """What it is called."""

    def pairs_of(self, factors: pa.Table) -> NDArray[np.int64]:
        """The linked factors, two rows of the log's factors a row."""

    def measure_merged(self, factors: pa.Table, impressions: NDArray[np.int64]) -> MergedFactors | None:
        """What it leaves to debias with; None where it merges nothing."""

    def apply(self, counts: Counts) -> Counts:
        """Counts as they would be if it had been carried out."""

    def place(self, factors: pa.Table) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Propensities of the factors on one scale, and errors of their logarithms, where it has them."""

    @property
    def assumption(self) -> AssumedScore | None:
        """What it takes on trust, where the log could say something to that."""


def find_components(
    root: NDArray[np.int32], factors: pa.Table, impressions: NDArray[np.int64], plan: LinkingPlan | None = None
) -> Components:
    """Components of the log's factors, from the smallest factor of each one's component in the log itself, with
    what a plan links; `impressions` is by factor."""
    return number_components(join_classes(link_planned(root, factors, plan), factors), impressions)


def link_planned(root: NDArray[np.int32], factors: pa.Table, plan: LinkingPlan | None) -> NDArray[np.int32]:
    """The smallest factor of each one's component, with what a plan links."""
    if plan is None:
        return root
    root = root.copy()
    for a, b in plan.pairs_of(factors).tolist():
        link(root, a, b)
    return find_roots(root)


def number_components(root: NDArray[np.int32], impressions: NDArray[np.int64]) -> Components:
    """Number the components that `root` (the smallest factor of each factor's component) describes."""
    smallest, member = np.unique(root, return_inverse=True)
    factors = np.bincount(member)
    shown = np.zeros(len(smallest), np.int64)
    np.add.at(shown, member, impressions)
    rank = np.lexsort((smallest, -shown, -factors))
    number = np.empty(len(rank), np.int32)
    number[rank] = np.arange(len(rank))
    return Components(number[member], factors[rank].astype(np.int64), shown[rank])

"""What a swap may do, and why components stay apart when that is too little.

A swap shows an item, known under a source factor, under a target factor of another component. Only the
new pair (item, target) is shown: the evidence at the source lies in the log already. So `only_positions`
limits targets, and `exclude_items` and `min_impressions` limit which cells may serve as sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.offsets import take_groups

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Allowed:
    """`only_positions`: mask of factors that may be targets, `only_sources` of those that may be sources.
    `exclude_items`: mask of items that may not move. `min_impressions`: what an item needs at its source.
    `max_position_change`: largest distance of the values `position` (one a factor) between source and target."""

    only_positions: Mask | None = None
    exclude_items: Mask | None = None
    min_impressions: int = 0
    max_position_change: float | None = None
    position: Floats | None = None
    only_sources: Mask | None = None

    def __post_init__(self) -> None:
        if self.max_position_change is not None and self.position is None:
            raise ValueError("max_position_change needs the position of every factor")


ANYTHING = Allowed()


class FittedCells(NamedTuple):
    """Cells sorted by item, with what a fit says of items and factors and the component of every factor."""

    offsets: NDArray[np.int64]
    factor: NDArray[np.int32]
    impressions: NDArray[np.unsignedinteger]
    relevance: Floats
    propensity: Floats
    component: NDArray[np.integer]

    @property
    def item(self) -> NDArray[np.int64]:
        """The item of every cell."""
        return np.repeat(np.arange(len(self.relevance)), np.diff(self.offsets))

    def take(self, items: NDArray[np.int64]) -> FittedCells:
        """The cells of these items, in their order."""
        at, offsets = take_groups(self.offsets, items)
        relevance = self.relevance[items]
        return self._replace(
            offsets=offsets, factor=self.factor[at], impressions=self.impressions[at], relevance=relevance
        )


class Condition(NamedTuple):
    """A condition, and what to say of a component that has nothing left once it is applied."""

    passes: Mask
    otherwise: str


def is_positive(values: Floats) -> Mask:
    """True where a value is a finite number above 0."""
    return np.isfinite(values) & (values > 0)


def list_source_conditions(cells: FittedCells, allowed: Allowed) -> list[Condition]:
    """The conditions on a cell that is to be a source."""
    item = cells.item
    stages = [
        Condition(is_positive(cells.relevance)[item], "none of its items has a relevance above 0"),
        Condition(is_positive(cells.propensity)[cells.factor], "none of its factors has a propensity above 0"),
    ]
    if allowed.only_sources is not None:
        stages.append(Condition(allowed.only_sources[cells.factor], "none of its factors may be left"))
    if allowed.exclude_items is not None:
        stages.append(Condition(~allowed.exclude_items[item], "all its usable items are excluded"))
    if allowed.min_impressions > 0:
        stages.append(
            Condition(
                cells.impressions >= allowed.min_impressions,
                f"none of its usable items has {allowed.min_impressions:,} impressions under one factor",
            )
        )
    return stages


def list_target_conditions(cells: FittedCells, allowed: Allowed) -> list[Condition]:
    """The conditions on a factor that is to be a target."""
    stages = [Condition(is_positive(cells.propensity), "none of its factors has a propensity above 0")]
    if allowed.only_positions is not None:
        stages.append(Condition(allowed.only_positions, "none of its factors is an allowed target"))
    return stages


def all_pass(stages: list[Condition]) -> Mask:
    """True where every condition holds."""
    passes = stages[0].passes
    for stage in stages[1:]:
        passes = passes & stage.passes
    return passes


def _find_first_failures(stages: list[Condition], component: NDArray[np.integer], n: int) -> list[str | None]:
    """For each component, the words of the stage after which nothing of it is left (None: something is)."""
    words: list[str | None] = [None] * n
    left = np.ones(len(component), dtype=np.bool_)
    for stage in stages:
        left = left & stage.passes
        for empty in np.flatnonzero(np.bincount(component[left], minlength=n) == 0):
            words[empty] = words[empty] or stage.otherwise
    return words


def explain_apart(cells: FittedCells, allowed: Allowed, apart: NDArray[np.int64]) -> list[str]:
    """Why each of the components `apart` could not be joined: what keeps items from leaving it, and what
    keeps items from coming in."""
    n = int(cells.component.max()) + 1
    leaving = _find_first_failures(list_source_conditions(cells, allowed), cells.component[cells.factor], n)
    coming = _find_first_failures(list_target_conditions(cells, allowed), cells.component, n)
    limit = allowed.max_position_change
    reach = "" if limit is None else f" within {limit:g} positions"
    return [
        f"no item can leave it ({leaving[c] or f'no other component can take one{reach}'}) "
        f"and none can come in ({coming[c] or f'no other component can give one{reach}'})"
        for c in apart
    ]

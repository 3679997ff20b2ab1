"""What ties the factors of cells in partitions to each other: by items, by clicks, and by a formula if there is one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.partitions import Partitions
from elute.errors import EluteError
from elute.estimate.partitioned.work import CrossingTask, Outline, unite_links
from elute.estimate.solve import boundary
from elute.estimate.solve.effect_boundary import tie_clicked, tie_parts
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.problem import Codes
from elute.identify.components import number_components
from elute.identify.effects.classes import join_classes
from elute.identify.effects.design import EffectDesign, find_design


class TiedPartitions(NamedTuple):
    """By merged factor its component and its part, within which ratios are finite; and the effects that a formula makes
    propensities of."""

    component: Codes
    part: Codes
    design: EffectDesign | None
    space: EffectSpace | None

    @property
    def rough(self) -> EffectDesign | None:
        """Without priors: for what the log itself tells."""
        return None if self.design is None else self.design.roughen()


def tie_partitions(partitions: Partitions, codes: Codes, outline: Outline) -> TiedPartitions:
    """Of an outline of the same partitions."""
    n, clicked = len(outline.root), outline.clicked > 0
    design = find_design(partitions.factors)
    if design is not None and n < len(codes):
        raise EluteError("a formula for `bias=` takes no `plan=` where cells are not held in memory")

    def list_crossings(group: Codes, listed: NDArray[np.bool_]) -> NDArray[np.int32]:
        links = partitions.map_reduce(CrossingTask(codes, group, listed), unite_links)
        return np.stack((links // n, links % n), axis=1).astype(np.int32)

    root = outline.root if design is None else join_classes(outline.root, partitions.factors)
    component = number_components(root, outline.shown.astype(np.int64)).of_factor
    if design is None:
        crossings = list_crossings(outline.clicked_root, clicked)
        part = boundary.find_strong_parts(outline.clicked_root, clicked, crossings)
        return TiedPartitions(component, part, None, None)
    tied = tie_clicked(design, outline.clicked_root)
    part, span = tie_parts(design, tied, clicked, list_crossings(tied.label, np.ones(n, np.bool_)))
    return TiedPartitions(component, part, design, EffectSpace.of(design, span))

"""Parts of a log within which chains of clicks determine all ratios of propensities.

Where a formula ties factors, parts are classes of factors: what clicks tell of effects decides which ratios are known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts
from elute.estimate.solve import boundary
from elute.estimate.solve.effect_boundary import find_effect_parts
from elute.estimate.solve.problem import total_by_factor
from elute.identify.effects.classes import join_classes, number_classes
from elute.identify.effects.design import EffectDesign, find_design
from elute.identify.effects.independent import keep_independent
from elute.kernels.forest import merge_edges

Ints = NDArray[np.int64]
Roots = NDArray[np.int32]


def find_parts(counts: Counts, component: NDArray[np.integer]) -> Ints:
    """By factor: its number among the parts of components within which chains of clicks determine all ratios. A factor
    without a click counts to the main part of its component."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    clicks = total_by_factor(counts.factor, counts.clicks, counts.n_factors)
    design = find_design(counts.factors)
    if design is not None:
        return _number(_find_tied(cells, clicks, design, component))
    found = boundary.find_parts(cells, counts.n_factors)[0].astype(np.int64)
    main = _find_main(clicks, component, found)
    found = np.where(found == boundary.NOWHERE, main[component], found)
    return _number(np.where(found < 0, counts.n_factors + component, found))


def _find_main(clicks: NDArray[np.float64], component: NDArray[np.integer], part: NDArray[np.integer]) -> Ints:
    """By component: its part with most clicks; `NOWHERE` for one without a click."""
    out = np.full(int(component.max()) + 1, boundary.NOWHERE)
    for main in boundary.find_main_parts(clicks, component.astype(np.int32), part.astype(np.int32)):
        out[component[(part == main).argmax()]] = main
    return out


def _find_tied(
    cells: Cells, clicks: NDArray[np.float64], design: EffectDesign, component: NDArray[np.integer]
) -> Roots:
    """The smallest factor of each one's part. What is open about factors without a click, and about nothing else, is
    left out: they count to the main part."""
    found, _, span = find_effect_parts(cells, design)
    root, main = number_classes(span.key_factors(design)), _find_main(clicks, component, found)
    lost = np.flatnonzero((found == boundary.NOWHERE) & (main[component] != boundary.NOWHERE))
    if not len(lost):
        return root
    clicked = np.unique(found[found != boundary.NOWHERE])
    among = np.column_stack((np.full_like(clicked, clicked[0]), clicked))
    alone = np.column_stack((lost, main[component[lost]]))
    kept = keep_independent(np.concatenate((among, alone)), root, design.factors)[len(among) :]
    return join_classes(merge_edges(root, alone[kept].astype(np.int32)), design.factors)


def _number(labels: NDArray[np.integer]) -> Ints:
    return np.asarray(np.unique(labels, return_inverse=True)[1].reshape(-1), np.int64)

"""What it costs to join components: the nearest factors of any two of them (Eq. 8), or of each one and a few hubs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from elute.kernels.jit import jit
from elute.repair.distortion.paths import Floats, Ints


class Links(NamedTuple):
    """The nearest factors of two components each, as rows: factors a < b, and their distance."""

    pairs: Ints
    cost: Floats


def link_all(features: Floats, component: NDArray[np.integer]) -> Links:
    """Of any two components. Ties go to the smaller factors."""
    n = int(component.max()) + 1
    square, a, b = _find_nearest(np.ascontiguousarray(features), component, n)
    i, j = np.triu_indices(n, 1)
    return Links(np.column_stack((a[i, j], b[i, j])), np.sqrt(square[i, j]))


@jit
def _find_nearest(features: Floats, component: NDArray[np.integer], n: int) -> tuple[Floats, Ints, Ints]:
    square = np.full((n, n), np.inf)
    first = np.zeros((n, n), np.int64)
    second = np.zeros((n, n), np.int64)
    for a in range(features.shape[0]):
        for b in range(a + 1, features.shape[0]):
            i, j = min(component[a], component[b]), max(component[a], component[b])
            if i == j:
                continue
            total = 0.0
            for axis in range(features.shape[1]):
                step = features[a, axis] - features[b, axis]
                total += step * step
            if total < square[i, j]:
                square[i, j], first[i, j], second[i, j] = total, a, b
    return square, first, second


def link_hubs(features: Floats, component: NDArray[np.integer], hubs: Ints) -> Links:
    """Of each hub and every other component."""
    found = []
    for hub in hubs:
        inside = np.flatnonzero(component == hub)
        near, which = cKDTree(features[inside]).query(features)
        other = inside[which]
        order = np.lexsort((other, np.arange(len(near)), near, component))
        first = order[np.flatnonzero(np.diff(component[order], prepend=-1))]
        first = first[component[first] != hub]
        found.append((np.column_stack((first, other[first])), near[first]))
    pairs = np.sort(np.concatenate([pairs for pairs, _ in found]), axis=1)
    return Links(pairs, np.concatenate([cost for _, cost in found]))

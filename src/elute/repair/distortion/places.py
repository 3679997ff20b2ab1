"""What the pairs of a plan do to the scales of components, whether a formula ties factors or not.

Without a formula pairs are a tree, and errors add up along its paths (`paths`). With one, a pair that is made equal
moves all that its comparison settles: a fit of exact click probabilities has log o' = log o - log s with log s = X·γ,
where γ is 0 on what the log determines, and

    (X_a - X_b)·γ = log o(a) - log o(b)

for every pair. These equations leave nothing open, so that log s is the sum of the pairs' differences, each times how
often it enters: the *place* of a component, one number a pair. If no pair differs by more than a factor δ, the ratio of
two relevances is off by at most δ^d, d the sum of absolute differences of their places, and some propensities attain
it. Along a tree places are 0 and ±1, and d is the length of the path.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu
from scipy.spatial.distance import cdist

from elute.estimate.solve.effects import EffectSpace
from elute.identify.effects.classes import link_alike, root_classes
from elute.identify.effects.design import EffectDesign, find_design
from elute.identify.effects.span import find_span
from elute.repair.distortion.paths import (
    Distances,
    Floats,
    Ints,
    PairTree,
    find_log_scales,
    find_longest_path,
    measure_distances,
    span_components,
)

MOST_PAIRS = 1_000
"""Pairs under a formula of which places are found."""

_SIGNS = 10
_ROWS = 500
_DIGITS = 9


class ClassPlaces(NamedTuple):
    """By component and pair: how often the pair's difference enters the component's scale."""

    at: Floats


Spanned = PairTree | ClassPlaces


def span_pairs(pairs: Ints, component: NDArray[np.integer], factors: pa.Table) -> Spanned | None:
    """What these pairs span; None where they are too many to tell. `component` is by factor."""
    design = find_design(factors)
    if design is None:
        return span_components(pairs, component)
    return None if len(pairs) > MOST_PAIRS else _place_components(design, pairs, component)


def _place_components(design: EffectDesign, pairs: Ints, component: NDArray[np.integer]) -> ClassPlaces:
    first = np.unique(component, return_index=True)[1]
    links = np.concatenate((link_alike(design, root_classes(component)), pairs))
    x = EffectSpace.of(design, find_span(design, links[:, 0], links[:, 1])).x
    system = csr_array(x[links[:, 0]] - x[links[:, 1]])
    solver = splu(csc_array(system.T @ system))
    right = np.zeros((len(links), len(pairs)))
    right[len(links) - len(pairs) :] = np.eye(len(pairs))
    found = solver.solve(system.T @ right)
    found += solver.solve(system.T @ (right - system @ found))
    moved = x[first] @ found
    return ClassPlaces(np.round(moved - moved[0], _DIGITS))


def find_scales(pairs: Ints, spanned: Spanned, log_propensity: Floats, origin: int) -> tuple[Floats, Floats]:
    """By component log s, which is 0 in `origin`; by pair log o(a) - log o(b)."""
    if isinstance(spanned, PairTree):
        return find_log_scales(pairs, spanned, log_propensity, origin)
    ratio = log_propensity[pairs[:, 0]] - log_propensity[pairs[:, 1]]
    return (spanned.at - spanned.at[origin]) @ ratio, ratio


def measure_longest(spanned: Spanned, length: Floats) -> float:
    """The largest distance of two components, in the sum of `length`, by pair."""
    if isinstance(spanned, PairTree):
        return find_longest_path(spanned, length)[0]
    points = spanned.at * length
    if points.shape[1] <= _SIGNS:
        signs = np.array(list(product((-1.0, 1.0), repeat=points.shape[1])))
        return float(np.ptp(points @ signs.T, axis=0).max())
    blocks = (points[row : row + _ROWS] for row in range(0, len(points), _ROWS))
    return max(float(cdist(block, points, "cityblock").max()) for block in blocks)


def find_farthest(spanned: ClassPlaces, length: Floats) -> tuple[int, int]:
    """Two components that are about as far from each other as any: the farthest from the first one, and from that."""
    points = spanned.at * length
    start = int(np.abs(points - points[0]).sum(axis=1).argmax())
    return start, int(np.abs(points - points[start]).sum(axis=1).argmax())


def locate(spanned: Spanned, length: Floats) -> Distances:
    """For distances between any two components."""
    if isinstance(spanned, PairTree):
        return measure_distances(spanned, length)
    n = len(spanned.at)
    return Distances(np.arange(n), np.zeros(n), np.zeros((1, n), np.int64), spanned.at * length)

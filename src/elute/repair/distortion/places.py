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
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsqr
from scipy.spatial.distance import cdist

from elute.identify.effects.classes import root_classes
from elute.identify.effects.design import EffectDesign, find_design
from elute.kernels.forest import spanning_edges
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

MOST_PAIRS = 100
"""Pairs under a formula of which places are found."""

_SIGNS = 10
_ROWS = 500
_TIGHT, _ROUNDS, _DIGITS = 1e-14, 20_000, 9


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
    x, links = design.matrix, spanning_edges(root_classes(component))
    first = np.unique(component, return_index=True)[1]
    system = csr_array(vstack([x[links[:, 1]] - x[links[:, 0]], x[pairs[:, 0]] - x[pairs[:, 1]]], format="csr"))
    at = np.zeros((len(first), len(pairs)))
    for number in range(len(pairs)):
        right = np.zeros(system.shape[0])
        right[len(links) + number] = 1.0
        moved = x @ lsqr(system, right, atol=_TIGHT, btol=_TIGHT, iter_lim=_ROUNDS)[0]
        at[:, number] = np.round(moved[first] - moved[first[0]], _DIGITS)
    return ClassPlaces(at)


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


def locate(spanned: Spanned, length: Floats) -> Distances:
    """For distances between any two components."""
    if isinstance(spanned, PairTree):
        return measure_distances(spanned, length)
    n = len(spanned.at)
    return Distances(np.arange(n), np.zeros(n), np.zeros((1, n), np.int64), spanned.at * length)

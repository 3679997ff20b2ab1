"""Trees of merged pairs over components: sums along them, longest paths, and what known propensities say of scales.

A merged fit of exact click probabilities has r' = s·r and o' = o/s with one s a component (Theorem 1 within it). A
pair (a in A, b in B) forces o'(a) = o'(b), so

    log s_A - log s_B = log o(a) - log o(b),

a signed difference. The ratio of two relevances is therefore off by the signed sum of these along the path between
their components; no scale enters. If no pair differs by more than a factor δ, that is at most δ^d for a path of d
pairs, and some propensities attain it: signs can all agree along one path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PairTree(NamedTuple):
    """A spanning tree: the half-edges of component c are first[c] to first[c + 1]."""

    first: Ints
    there: Ints
    """By half-edge: the component at its other end."""
    pair: Ints
    """By half-edge: the pair it stands for."""
    leaves_a: NDArray[np.bool_]
    """By half-edge: whether it starts on the side of the pair's first factor."""


@jit
def walk(tree: PairTree, start: int, gain: Floats) -> tuple[Floats, Ints]:
    """For every component the sum of `gain`, by half-edge, on the way from `start` (NaN: not reached), and the
    half-edge by which it is reached (-1: none)."""
    n = tree.first.shape[0] - 1
    total = np.full(n, np.nan)
    via = np.full(n, -1)
    stack = [start]
    total[start] = 0.0
    while len(stack) > 0:
        here = stack.pop()
        for half in range(tree.first[here], tree.first[here + 1]):
            there = tree.there[half]
            if np.isnan(total[there]):
                total[there] = total[here] + gain[half]
                via[there] = half
                stack.append(there)
    return total, via


def span_components(pairs: NDArray[np.integer], component: NDArray[np.integer]) -> PairTree:
    """The tree of K - 1 `pairs` of factors over the components 0 to K - 1; `component` is by factor."""
    a, b = np.asarray(pairs, np.int64).reshape(-1, 2).T
    here = np.concatenate((component[a], component[b])).astype(np.int64)
    there = np.concatenate((component[b], component[a])).astype(np.int64)
    order = np.argsort(here, kind="stable")
    first = np.searchsorted(here[order], np.arange(int(component.max()) + 2))
    tree = PairTree(first, there[order], order % max(len(a), 1), order < len(a))
    reached = walk(tree, 0, np.zeros(len(order)))[0]
    if len(a) != len(reached) - 1 or np.isnan(reached).any():
        raise ValueError("the pairs are not a spanning tree over the components")
    return tree


def find_longest_path(tree: PairTree, length: Floats) -> tuple[float, Ints]:
    """The largest sum of `length`, by pair and at least 0, along any path, and the pairs on such a path in order."""
    gain = length[tree.pair]
    start = int(walk(tree, 0, gain)[0].argmax())
    total, via = walk(tree, start, gain)
    end = here = int(total.argmax())
    on_path = []
    while via[here] >= 0:
        half = int(via[here])
        on_path.append(int(tree.pair[half]))
        here = int(np.searchsorted(tree.first, half, side="right")) - 1
    return float(total[end]), np.array(on_path, np.int64)


def find_log_scales(
    pairs: NDArray[np.integer], tree: PairTree, log_propensity: Floats, origin: int
) -> tuple[Floats, Floats]:
    """By component log s, which is 0 in `origin`; by pair log o(a) - log o(b). Propensities of merged factors must be
    finite and above 0."""
    a, b = np.asarray(pairs, np.int64).reshape(-1, 2).T
    ratio = log_propensity[a] - log_propensity[b]
    gain = np.where(tree.leaves_a, -ratio[tree.pair], ratio[tree.pair])
    return walk(tree, origin, gain)[0], ratio


class Distances(NamedTuple):
    """Distances between any two components in constant time: components by their place in a depth-first order, in
    which the parents of all places after that of u and up to that of v reach up to where their paths meet."""

    place: Ints
    """By component."""
    depth: Floats
    """By place: distance from the root."""
    highest: Ints
    """By level l and place: the smallest place of a parent of the next 2^l places."""
    points: Floats
    """By component, where a formula ties factors: distances are sums of absolute differences. Empty for a tree."""


def measure_distances(tree: PairTree, length: Floats) -> Distances:
    """For distances in the sum of `length`, by pair."""
    depth, via = walk(tree, 0, length[tree.pair])
    parent = np.searchsorted(tree.first, via, side="right") - 1
    place = _order_depth_first(tree)
    by_place, up = np.empty_like(depth), np.zeros(len(depth), np.int64)
    by_place[place] = depth
    up[place[1:]] = place[parent[1:]]  # component 0 is the root
    levels = [up]
    while 2 ** len(levels) <= len(up):
        below, step = levels[-1], 2 ** (len(levels) - 1)
        levels.append(np.minimum(below, np.concatenate((below[step:], below[-step:]))))
    return Distances(place, by_place, np.stack(levels), np.empty((0, 0)))


@jit
def _order_depth_first(tree: PairTree) -> Ints:
    n = tree.first.shape[0] - 1
    place = np.full(n, -1)
    stack = [0]
    visited = 0
    while len(stack) > 0:
        here = stack.pop()
        place[here] = visited
        visited += 1
        for there in tree.there[tree.first[here] : tree.first[here + 1]]:
            if place[there] < 0:
                stack.append(there)  # noqa: PERF401 (compiled)
    return place


@jit
def distance(tree: Distances, a: int, b: int) -> float:
    """Between two components."""
    if tree.points.shape[0] > 0:
        total = 0.0
        for way in range(tree.points.shape[1]):
            total += abs(tree.points[a, way] - tree.points[b, way])
        return total
    low, high = min(tree.place[a], tree.place[b]), max(tree.place[a], tree.place[b])
    if low == high:
        return 0.0
    level = 0
    while 2 << level <= high - low:
        level += 1
    row = tree.highest[level]
    meet = min(row[low + 1], row[high + 1 - (1 << level)])
    return float(tree.depth[low] + tree.depth[high] - 2.0 * tree.depth[meet])

"""A k-d tree that answers: which point of ANOTHER group is nearest?

Library trees answer "nearest point", and with one group of 15,000 points the nearest of another group may
be the 15,000th. Here every node knows whether all its points belong to one group; a search skips such a
node when the group is its own. Borůvka's rounds need nothing else (single-tree form of March, Ram and
Gray 2010, "Fast Euclidean minimum spanning tree").

Answers are exact under the total order (squared distance, smaller name, larger name) of pairs of points:
a box's distance sums the same coordinates in the same order as a point's, and rounding is monotone, so the
bound never exceeds the distance of a point inside, not even by a rounding error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIXED = -1
"""Label of a node whose points belong to several groups."""

_LEAF = 32
_DEPTH = 128
_NO_NAME = np.iinfo(np.int64).max


class Tree(NamedTuple):
    """Node n holds the points begin[n] to end[n]; its children are child[n] and child[n] + 1 (leaf: -1).

    `points` has a row an axis: the distances to all points of a leaf are then summed side by side.
    """

    points: Floats
    names: Ints
    begin: Ints
    end: Ints
    child: Ints
    low: Floats
    high: Floats
    smallest_name: Ints


@jit
def _split_nodes(
    points: Floats,
    order: Ints,
    begin: Ints,
    end: Ints,
    child: Ints,
    low: Floats,
    high: Floats,
) -> int:
    """Halve along the widest side until a node is a leaf; `order` becomes the points in tree order."""
    nodes = 1
    begin[0] = 0
    end[0] = order.shape[0]
    node = 0
    while node < nodes:
        members = order[begin[node] : end[node]]
        side = 0
        for axis in range(points.shape[1]):
            values = points[members, axis]
            low[node, axis] = values.min()
            high[node, axis] = values.max()
            if high[node, axis] - low[node, axis] > high[node, side] - low[node, side]:
                side = axis
        child[node] = -1
        if members.shape[0] > _LEAF:
            members[:] = members[np.argsort(points[members, side])]
            middle = begin[node] + members.shape[0] // 2
            child[node] = nodes
            begin[nodes], end[nodes] = begin[node], middle
            begin[nodes + 1], end[nodes + 1] = middle, end[node]
            nodes += 2
        node += 1
    return nodes


@jit
def _find_smallest_names(names: Ints, begin: Ints, end: Ints) -> Ints:
    out = np.empty(begin.shape[0], dtype=np.int64)
    for node in range(begin.shape[0]):
        out[node] = names[begin[node] : end[node]].min()
    return out


def build_tree(points: Floats, names: Ints) -> Tree:
    """The tree of at least one point; `names` are the points' names in the order of pairs."""
    n, axes = points.shape
    capacity = 4 * (n // _LEAF) + 3
    order = np.arange(n, dtype=np.int64)
    begin, end, child = (np.empty(capacity, dtype=np.int64) for _ in range(3))
    low, high = np.empty((capacity, axes)), np.empty((capacity, axes))
    nodes = _split_nodes(points, order, begin, end, child, low, high)
    begin, end, child, low, high = (column[:nodes] for column in (begin, end, child, low, high))
    names = names[order]
    return Tree(
        np.ascontiguousarray(points[order].T),
        names,
        begin,
        end,
        child,
        low,
        high,
        _find_smallest_names(names, begin, end),
    )


@jit
def _label_nodes(tree: Tree, group: NDArray[np.int32]) -> NDArray[np.int32]:
    """The group all points of a node belong to, or MIXED. Children come after their parent."""
    label = np.empty(tree.begin.shape[0], dtype=np.int32)
    for node in range(tree.begin.shape[0] - 1, -1, -1):
        child = tree.child[node]
        if child >= 0:
            label[node] = label[child] if label[child] == label[child + 1] else MIXED
        else:
            label[node] = group[tree.begin[node]]
            for i in range(tree.begin[node] + 1, tree.end[node]):
                if group[i] != label[node]:
                    label[node] = MIXED
    return label


@jit
def _box_distance(tree: Tree, node: int, i: int) -> float:
    """Squared distance of point i from the box of a node."""
    total = 0.0
    for axis in range(tree.points.shape[0]):
        value = tree.points[axis, i]
        outside = max(tree.low[node, axis] - value, value - tree.high[node, axis], 0.0)
        total += outside * outside
    return total


@jit
def _fill_leaf_distances(tree: Tree, leaf: int, i: int, out: Floats) -> None:
    """Squared distances of point i from the points of a leaf."""
    begin, end = tree.begin[leaf], tree.end[leaf]
    out[:] = 0.0
    for axis in range(tree.points.shape[0]):
        value = tree.points[axis, i]
        row = tree.points[axis, begin:end]
        for k in range(row.shape[0]):
            difference = row[k] - value
            out[k] += difference * difference


@jit
def _precedes(d: float, a: int, b: int, than_d: float, than_a: int, than_b: int) -> bool:
    """The total order of pairs: by squared distance, then the smaller name, then the larger."""
    if d != than_d:
        return d < than_d
    low, high = min(a, b), max(a, b)
    than_low, than_high = min(than_a, than_b), max(than_a, than_b)
    return low < than_low or (low == than_low and high < than_high)


@jit
def _find_nearest_other(
    tree: Tree, label: NDArray[np.int32], group: NDArray[np.int32], i: int, limit: float, a: int, b: int
) -> tuple[float, int]:
    """The point of another group first in the order of pairs with point i, if it precedes the pair
    (a, b) at squared distance `limit`: its squared distance and index; else `limit` and -1."""
    stack = np.empty(_DEPTH, dtype=np.int64)
    distance = np.empty(_DEPTH)
    squares = np.empty(_LEAF)
    stack[0] = 0
    distance[0] = _box_distance(tree, 0, i)
    depth = 1
    found = -1
    name = tree.names[i]
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if label[node] == group[i]:
            continue
        if not _precedes(distance[depth], name, tree.smallest_name[node], limit, a, b):
            continue
        child = tree.child[node]
        if child < 0:
            _fill_leaf_distances(tree, node, i, squares)
            for j in range(tree.begin[node], tree.end[node]):
                d = squares[j - tree.begin[node]]
                if d <= limit and group[j] != group[i] and _precedes(d, name, tree.names[j], limit, a, b):
                    limit, a, b, found = d, name, tree.names[j], j
            continue
        near, far = child, child + 1
        to_near, to_far = _box_distance(tree, near, i), _box_distance(tree, far, i)
        if to_far < to_near:
            near, far, to_near, to_far = far, near, to_far, to_near
        stack[depth], distance[depth] = far, to_far
        stack[depth + 1], distance[depth + 1] = near, to_near
        depth += 2
    return limit, found


@jit
def _offer_link(
    best: Floats,
    best_i: Ints,
    best_j: Ints,
    names: Ints,
    group: int,
    d: float,
    i: int,
    j: int,
) -> None:
    """Let the link of points i and j compete for the best of a group."""
    a = names[best_i[group]] if best_i[group] >= 0 else _NO_NAME
    b = names[best_j[group]] if best_i[group] >= 0 else _NO_NAME
    if _precedes(d, names[i], names[j], best[group], a, b):
        best[group], best_i[group], best_j[group] = d, i, j


@jit
def find_cheapest_links(
    tree: Tree, group: NDArray[np.int32], groups: int, known: Floats, neighbour: Ints
) -> tuple[Floats, Ints, Ints]:
    """The first link of every group to another: squared distance and the two points (-1: none).

    `known[i]` is a lower bound of point i's squared distance to another group, exact where its
    `neighbour[i]` (-1: unknown) is still in another group. Both are kept from round to round.
    """
    names = tree.names
    label = _label_nodes(tree, group)
    best = np.full(groups, np.inf)
    best_i = np.full(groups, -1)
    best_j = np.full(groups, -1)
    for i in range(group.shape[0]):
        if neighbour[i] >= 0 and group[neighbour[i]] != group[i]:
            _offer_link(best, best_i, best_j, names, group[i], known[i], i, neighbour[i])
            _offer_link(best, best_i, best_j, names, group[neighbour[i]], known[i], i, neighbour[i])
        else:
            neighbour[i] = -1
    for i in np.argsort(known, kind="mergesort"):
        own = group[i]
        if neighbour[i] >= 0 or known[i] > best[own]:
            continue
        a = names[best_i[own]] if best_i[own] >= 0 else _NO_NAME
        b = names[best_j[own]] if best_i[own] >= 0 else _NO_NAME
        known[i], neighbour[i] = _find_nearest_other(tree, label, group, i, best[own], a, b)
        if neighbour[i] >= 0:
            _offer_link(best, best_i, best_j, names, own, known[i], i, neighbour[i])
            _offer_link(best, best_i, best_j, names, group[neighbour[i]], known[i], i, neighbour[i])
    return best, best_i, best_j

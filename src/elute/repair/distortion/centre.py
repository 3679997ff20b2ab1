"""The tree of least distortion: the minimum-diameter spanning tree over what it costs to join components.

Where the log ratio of two factors' propensities grows with the distance of their features, a tree distorts ratios of
relevances by as much as its longest path is long. The spanning tree whose longest path is shortest is the tree of
shortest paths from the graph's absolute centre: the point, on a node or within an edge, whose farthest node is nearest
(Hassin and Tamir 1995; the centre as in Kariv and Hakimi 1979). On an edge (u, v) of length w, the point t away from u
reaches node i at min(t + D(u, i), w - t + D(v, i)); its eccentricity has its local minima where a rising line of one
node meets the falling line of another.

Every edge counts a hair more than it is long, so that among trees of one diameter that with fewer pairs on its longest
path is found; lengths that agree to about a millionth are equal here.

Exact up to `MOST_EXACT` components and `MOST_DISTANCES` distances between factors. Beyond, the best tree of shortest
paths from a few hubs, over the edges of the tree of least cost and of the stars around the hubs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from elute.kernels.jit import jit
from elute.repair.distortion.linkage import Links, link_all, link_hubs
from elute.repair.distortion.paths import Floats, Ints, find_longest_path, span_components

MOST_EXACT = 300
MOST_DISTANCES = 50_000_000

_HAIR = 1e-9
"""As a share of the longest edge."""

_HUBS = 8
"""From the middle of the cheapest tree's longest path, and as many of the largest components."""


def find_least_diameter(
    features: Floats, component: NDArray[np.integer], cheapest: Ints, costs: Floats
) -> tuple[Ints, Floats, bool]:
    """Pairs (a < b) of a spanning tree of least diameter, their costs, and whether no tree is better.

    `features` and `component` (0 to K - 1) by factor; `cheapest` and `costs`: the pairs of the tree of least cost.
    """
    n = int(component.max()) + 1
    sizes = np.bincount(component).astype(np.float64)
    exact = n <= MOST_EXACT and float(len(component) ** 2 - (sizes**2).sum()) / 2 <= MOST_DISTANCES
    if exact:
        links = link_all(features, component)
        i, j = component[links.pairs].T
        length = np.zeros((n, n))
        length[i, j] = length[j, i] = links.cost + _find_hair(links.cost)
        chosen = _pick_links(links, component, _span_from_centre(length))
    else:
        chosen = _pick_best_star(features, component, Links(cheapest, costs))
    order = np.lexsort((chosen.pairs[:, 1], chosen.pairs[:, 0], chosen.cost))
    return chosen.pairs[order], chosen.cost[order], exact


def _find_hair(cost: Floats) -> float:
    """What a pair counts beyond its length."""
    return float(_HAIR * (cost.max(initial=0.0) or 1.0))


def _pick_links(links: Links, component: NDArray[np.integer], parent: Ints) -> Links:
    """The links, one for any two components, that join each component with its parent; the root's is below 0."""
    own = np.flatnonzero(parent >= 0)
    known, wanted = (
        np.minimum(i, j) * len(parent) + np.maximum(i, j)
        for i, j in (component[links.pairs].astype(np.int64).T, (own, parent[own].astype(np.int64)))
    )
    order = np.argsort(known)
    rows = order[np.searchsorted(known[order], wanted)]
    return Links(links.pairs[rows], links.cost[rows])


def _pick_best_star(features: Floats, component: NDArray[np.integer], cheapest: Links) -> Links:
    """The tree of shortest paths from a hub whose longest path is shortest."""
    n = int(component.max()) + 1
    path = find_longest_path(span_components(cheapest.pairs, component), cheapest.cost)[1]
    middle = path[max(len(path) // 2 - _HUBS // 2, 0) :][:_HUBS]
    hubs = np.unique(np.concatenate((component[cheapest.pairs[middle]].ravel()[:_HUBS], np.arange(min(_HUBS, n)))))
    stars = link_hubs(features, component, hubs)
    pairs, cost = np.concatenate((cheapest.pairs, stars.pairs)), np.concatenate((cheapest.cost, stars.cost))
    ends = np.sort(component[pairs].astype(np.int64), axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], cost, ends[:, 1], ends[:, 0]))
    fresh = np.concatenate(([True], (np.diff(ends[order], axis=0) != 0).any(axis=1)))
    links = Links(pairs[order[fresh]], cost[order[fresh]])
    hair = _find_hair(links.cost)
    graph = csr_array((links.cost + hair, tuple(ends[order[fresh]].T)), shape=(n, n))
    _, parents = dijkstra(graph, directed=False, indices=hubs, return_predecessors=True)
    trees = [_pick_links(links, component, parent) for parent in parents]
    return min(trees, key=lambda tree: find_longest_path(span_components(tree.pairs, component), tree.cost + hair)[0])


@jit
def _find_shortest(length: Floats) -> Floats:
    """Distances between all nodes (Floyd and Warshall)."""
    d = length.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            through = d[i, k]
            for j in range(n):
                if through + d[k, j] < d[i, j]:
                    d[i, j] = through + d[k, j]
    return d


@jit
def _find_centre(length: Floats, d: Floats) -> tuple[int, int, float]:
    """The absolute centre: its edge (u, v), and how far it is from u."""
    n = d.shape[0]
    best, at, u, v = np.inf, 0.0, 0, 0
    order = np.empty((n, n), np.int64)
    for i in range(n):
        order[i] = np.argsort(-d[i])
        if d[i, order[i, 0]] < best:
            best, u, v = d[i, order[i, 0]], i, i
    for i in range(n):
        for j in range(i + 1, n):
            if np.minimum(d[i], d[j]).max() >= best:
                continue
            far = order[i, 0]
            for k in range(1, n):
                node = order[i, k]
                if d[j, node] > d[j, far]:
                    reach = (d[i, node] + d[j, far] + length[i, j]) / 2.0
                    if d[i, node] < d[i, far] and reach < best:
                        best, at, u, v = reach, reach - d[i, node], i, j
                    far = node
    return u, v, at


@jit
def _span_from_centre(length: Floats) -> Ints:
    """By node its parent in the tree of shortest paths from the centre; -1 for the root."""
    n = length.shape[0]
    shortest = _find_shortest(length)
    u, v, at = _find_centre(length, shortest)
    if length[u, v] - at + shortest[v, u] < at:
        u, v, at = v, u, length[u, v] - at
    d = np.full(n, np.inf)
    parent = np.full(n, -1)
    done = np.zeros(n, np.bool_)
    d[u] = at
    if u != v:
        d[v] = length[u, v] - at
        parent[v] = u
    for _ in range(n):
        here = -1
        for i in range(n):
            if not done[i] and (here < 0 or d[i] < d[here]):
                here = i
        done[here] = True
        for i in range(n):
            if not done[i] and i != u and d[here] + length[here, i] < d[i]:
                d[i] = d[here] + length[here, i]
                parent[i] = here
    return parent

"""Difference constraints: sharp intervals are shortest paths, and a contradiction is a cycle of negative length.

A constraint φ(head) - φ(tail) ≤ weight is an arrow. The largest possible φ(j) - φ(i) is the length d(i, j) of the
shortest path from i to j, and some φ attains it: no bound is sharper. No φ exists if and only if the weights of some
cycle sum to less than 0.

Node 0 stands for φ = 0, and has an arrow of weight 0 to every factor (o ≤ 1), so its distances p exist wherever there
is no contradiction. Lengths are measured as weight + p(tail) - p(head) ≥ 0 (Johnson), in which every node is at
distance 0 from node 0. So a search from i ends where it is as far from i as node 0 is: beyond, the way leads over
node 0.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-9
"""Lengths that differ by less are equal: sums of the same weights in another order are."""


class Arrows(NamedTuple):
    """Constraints φ(head) - φ(tail) ≤ weight."""

    tail: Ints
    head: Ints
    weight: Floats


class SortedArrows(NamedTuple):
    """Arrows sorted by tail, weights as lengths ≥ 0: node i owns `offsets[i]` to `offsets[i + 1]`. `highest`: of every
    node, the largest φ that it can have."""

    offsets: Ints
    head: Ints
    length: Floats
    highest: Floats


def find_highest(arrows: Arrows, nodes: int) -> tuple[Floats, Ints]:
    """The distance of every node from node 0, and the arrows of a negative cycle in their order; empty where there is
    none."""
    highest, came = np.full(nodes, np.inf), np.full(nodes, -1, np.int64)
    highest[0] = 0.0
    return highest, _relax(*arrows, highest, came)


def sort_arrows(arrows: Arrows, highest: Floats, reverse: bool = False) -> SortedArrows:
    """Of constraints without a contradiction; `reverse`: all arrows turned round."""
    tail, head = (arrows.head, arrows.tail) if reverse else (arrows.tail, arrows.head)
    length = np.maximum(arrows.weight + highest[arrows.tail] - highest[arrows.head], 0.0)
    order = np.argsort(tail, kind="stable")
    offsets = np.searchsorted(tail[order], np.arange(len(highest) + 1)).astype(np.int64)
    return SortedArrows(offsets, head[order], length[order], highest)


def measure_all(arrows: Arrows, highest: Floats, source: int, reverse: bool = False) -> Floats:
    """The distance of every node from `source`; `reverse`: to it."""
    net = sort_arrows(arrows, highest, reverse)
    out = np.full(len(highest), np.inf)
    _search(*net[:3], source, np.inf, out, np.zeros(len(highest), np.int64), np.empty(len(highest), np.int64))
    away = highest - highest[source]
    return np.asarray(out + (-away if reverse else away))


def measure_pairs(arrows: Arrows, highest: Floats, pairs: tuple[Ints, Ints], most: int) -> tuple[Floats, int]:
    """d(i, j) of some pairs sorted by i, and how many of the nodes i were searched from before `most` nodes had been
    visited. Beyond, ways over node 0 alone are looked at: not the shortest, so bounds that hold and are wider."""
    inside = (arrows.tail != 0) & (arrows.head != 0)
    lowest = measure_all(arrows, highest, 0, reverse=True)  # to node 0
    net = sort_arrows(Arrows(*(part[inside] for part in arrows)), highest)
    sources, first = np.unique(pairs[0], return_index=True)
    reach = np.maximum(lowest[sources] + highest[sources], 0.0)
    ends = np.append(first, len(pairs[0])).astype(np.int64)
    found, done = _search_each(*net[:3], sources, reach, ends, pairs[1], most)
    return np.asarray(found + highest[pairs[1]] - highest[pairs[0]]), done


@jit
def _relax(tail: Ints, head: Ints, weight: Floats, distance: Floats, came: Ints) -> Ints:
    """Bellman and Ford's algorithm, in rounds over all arrows. After a round, arrows that nodes were reached by last
    contain a cycle only if that is negative, and do after some round if one exists."""
    on, at = np.zeros(distance.shape[0], np.int64), 0
    while True:
        changed = False
        for arrow in range(tail.shape[0]):
            there = distance[tail[arrow]] + weight[arrow]
            if there < distance[head[arrow]] - ROUNDING:
                distance[head[arrow]] = there
                came[head[arrow]] = arrow
                changed = True
        if not changed:
            return np.empty(0, np.int64)
        on[:] = 0
        for start in range(distance.shape[0]):
            at = start
            while came[at] >= 0 and on[at] == 0:
                on[at] = start + 1
                at = tail[came[at]]
            if came[at] >= 0 and on[at] == start + 1:
                cycle = [came[at]]
                node = tail[came[at]]
                while node != at:
                    cycle.append(came[node])
                    node = tail[came[node]]
                return np.array(cycle[::-1])


@jit
def _search(
    offsets: Ints, head: Ints, length: Floats, source: int, reach: float, distance: Floats, seen: Ints, visited: Ints
) -> int:
    """Dijkstra's algorithm up to `reach`; the nodes whose `distance` it set are the first of `visited`, their number is
    what it gives. `seen` marks those, and is 0 before."""
    n = 1
    visited[0] = source
    seen[source] = 1
    distance[source] = 0.0
    waiting = [(0.0, source)]
    while len(waiting) > 0:
        far, node = heapq.heappop(waiting)
        if far > distance[node]:
            continue
        for arrow in range(offsets[node], offsets[node + 1]):
            there = far + length[arrow]
            if there < distance[head[arrow]] and there < reach:
                distance[head[arrow]] = there
                heapq.heappush(waiting, (there, head[arrow]))
                if seen[head[arrow]] == 0:
                    seen[head[arrow]] = 1
                    visited[n] = head[arrow]
                    n += 1
    return n


@jit
def _search_each(
    offsets: Ints, head: Ints, length: Floats, sources: Ints, reach: Floats, ends: Ints, target: Ints, most: int
) -> tuple[Floats, int]:
    """By pair the distance, at most `reach` of its source; the pairs of source k are `ends[k]` to `ends[k + 1]`."""
    nodes = offsets.shape[0] - 1
    distance, seen = np.full(nodes, np.inf), np.zeros(nodes, np.int64)
    visited, out = np.empty(nodes, np.int64), np.empty(target.shape[0])
    used = done = 0
    for k in range(sources.shape[0]):
        n = 0
        if used < most:
            n = _search(offsets, head, length, sources[k], reach[k], distance, seen, visited)
            done += 1
        for pair in range(ends[k], ends[k + 1]):
            out[pair] = min(distance[target[pair]], reach[k])
        for at in range(n):
            distance[visited[at]] = np.inf
            seen[visited[at]] = 0
        used += n
    return out, done

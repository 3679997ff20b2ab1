"""Union–find over factors.

`parent` holds a forest; every root is the smallest member of its set, so that the labels do not depend
on the order in which links arrive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Parents = NDArray[np.int32]
Node = int | np.int32 | np.int64


def singletons(n: int) -> Parents:
    """A forest in which every one of `n` nodes is alone."""
    return np.arange(n, dtype=np.int32)


@jit
def find_root(parent: Parents, node: Node) -> Node:
    """The representative of `node`, halving the path on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@jit
def link(parent: Parents, a: Node, b: Node) -> int:
    """Join the sets of `a` and `b`; 1 if they were two, 0 if they were one already.

    In an inner loop compare `parent[a]` and `parent[b]` first: mostly they are equal, and the call is saved.
    """
    a = find_root(parent, a)
    b = find_root(parent, b)
    if a == b:
        return 0
    parent[max(a, b)] = min(a, b)
    return 1


@jit
def link_cells(parent: Parents, offsets: NDArray[np.int64], factors: NDArray[np.int32]) -> None:
    """Join the factors of every item; item i owns the cells offsets[i] to offsets[i + 1]."""
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        if begin == end:
            continue
        first = factors[begin]
        for cell in range(begin + 1, end):
            other = factors[cell]
            if parent[first] != parent[other]:
                link(parent, first, other)


@jit
def find_roots(parent: Parents) -> NDArray[np.int32]:
    """The representative of every node."""
    out = np.empty_like(parent)
    for node in range(parent.shape[0]):
        out[node] = find_root(parent, node)
    return out


@jit
def join_edges(parent: Parents, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Take edges in the given order; true for those that join two trees of `parent`, which is updated.

    With edges in the order of their cost this is Kruskal's algorithm.
    """
    joins = np.zeros(left.shape[0], dtype=np.bool_)
    for edge in range(left.shape[0]):
        a = find_root(parent, left[edge])
        b = find_root(parent, right[edge])
        if a != b:
            parent[max(a, b)] = min(a, b)
            joins[edge] = True
    return joins

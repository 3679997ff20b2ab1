"""Union–find over factors.

`parent` holds a forest; every root is the smallest member of its set, so that the labels do not depend
on the order in which links arrive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Parents = NDArray[np.int32]


def singletons(n: int) -> Parents:
    """A forest in which every one of `n` nodes is alone."""
    return np.arange(n, dtype=np.int32)


@jit
def root(parent: Parents, node: int) -> int:
    """The representative of `node`, halving the path on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@jit
def link(parent: Parents, a: int, b: int) -> None:
    """Join the sets of `a` and `b`."""
    if parent[a] == parent[b]:
        return
    a = root(parent, a)
    b = root(parent, b)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@jit
def link_rows(parent: Parents, first: NDArray[np.int32], items: NDArray[np.int32], factors: NDArray[np.int32]) -> None:
    """Join each row's factor with the first factor its item was seen under (-1: not seen yet).

    The factors of one item are joined as a star, not as the complete graph of Algorithm 1: the
    components are the same, and the work is linear in the rows.
    """
    for i in range(items.shape[0]):
        item = items[i]
        seen = first[item]
        if seen < 0:
            first[item] = factors[i]
        elif seen != factors[i]:
            link(parent, seen, factors[i])


@jit
def link_cells(
    parent: Parents, offsets: NDArray[np.int64], factors: NDArray[np.int32], group: NDArray[np.int32]
) -> None:
    """Join the groups of the factors of every item; item i owns the cells offsets[i] to offsets[i + 1]."""
    for item in range(offsets.shape[0] - 1):
        begin = offsets[item]
        first = group[factors[begin]]
        for cell in range(begin + 1, offsets[item + 1]):
            link(parent, first, group[factors[cell]])


@jit
def roots(parent: Parents) -> NDArray[np.int32]:
    """The representative of every node."""
    out = np.empty_like(parent)
    for node in range(parent.shape[0]):
        out[node] = root(parent, node)
    return out

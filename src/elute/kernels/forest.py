"""Components known in pieces: each piece of a log gives a spanning forest over the factors, forests merge into one.

A forest is an array with, for every factor, the smallest factor of its tree. Merging is associative and commutative,
and the forest of lone factors changes nothing: pieces may be counted anywhere and merged in any order and grouping.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.blocks import map_blocks
from elute.kernels.unionfind import Parents, find_roots, join_edges, link_cells, singletons

_MANY = 1_000_000
"""Factors from which on a forest for each block of items would be dear."""


def spanning_edges(root: Parents) -> NDArray[np.int32]:
    """The fewest edges that say the same, one row each: at most one less than there are factors."""
    below = np.flatnonzero(root != np.arange(len(root)))
    return np.stack((root[below], below.astype(np.int32)), axis=1)


def merge_edges(root: Parents, more: NDArray[np.int32]) -> Parents:
    """The forest of `root` and of more edges."""
    parent = root.copy()
    join_edges(parent, more[:, 0].astype(np.int64), more[:, 1].astype(np.int64))
    return find_roots(parent)


def group_forest(root: Parents, group: NDArray[np.int32]) -> Parents:
    """The forest over groups of factors; `group` gives each factor's, numbered without gaps."""
    return merge_edges(singletons(int(group.max()) + 1), np.stack((group, group[root]), axis=1))


def connect_cells(offsets: NDArray[np.int64], factor: NDArray[np.int32], n_factors: int) -> Parents:
    """The forest over factors that items join; item i owns the cells offsets[i] to offsets[i + 1]."""

    def connect(items: slice, own: NDArray[np.int64]) -> Parents:
        parent = singletons(n_factors)
        link_cells(parent, own, factor)
        return find_roots(parent)

    if n_factors > _MANY:
        return connect(slice(0, len(offsets) - 1), offsets)
    first, *others = map_blocks(connect, offsets)
    for other in others:
        first = merge_edges(first, spanning_edges(other))
    return first

"""Components known in pieces: each piece of a log gives a spanning forest over the factors, forests merge into one.

A forest is an array with, for every factor, the smallest factor of its tree. Merging is associative and commutative,
and the forest of lone factors changes nothing: pieces may be counted anywhere and merged in any order and grouping.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.unionfind import Parents, find_roots, join_edges


def spanning_edges(root: Parents) -> NDArray[np.int32]:
    """The fewest edges that say the same, one row each: at most one less than there are factors."""
    below = np.flatnonzero(root != np.arange(len(root)))
    return np.stack((root[below], below.astype(np.int32)), axis=1)


def merge_edges(root: Parents, more: NDArray[np.int32]) -> Parents:
    """The forest of `root` and of more edges."""
    parent = root.copy()
    join_edges(parent, more[:, 0].astype(np.int64), more[:, 1].astype(np.int64))
    return find_roots(parent)

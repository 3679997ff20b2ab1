"""Growing a spanning forest over components, edge by edge (the one step all repairs share)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.unionfind import Parents, root


@jit
def joining(parent: Parents, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Take edges in the given order; true for those that join two trees of `parent`, which is updated.

    With edges in the order of their cost this is Kruskal's algorithm.
    """
    joins = np.zeros(left.shape[0], dtype=np.bool_)
    for edge in range(left.shape[0]):
        a = root(parent, left[edge])
        b = root(parent, right[edge])
        if a != b:
            parent[max(a, b)] = min(a, b)
            joins[edge] = True
    return joins

"""Which factors hang together: a set whose only common freedom is the model's gauge.

One random null direction shows it. If the gauge moves a set, the same gauge element moves each of its factors, and
by chance (1 in 2²⁸ a factor) it moves no other. For the scalar models a gauge element is the direction of one
factor; for the vector model it is the D × D matrix A with h_t = A v_t, which D factors fix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.identify.generic.field import Field, solve
from elute.kernels.jit import jit


def find_largest(direction: Field, vectors: Field, base: int, p: np.uint64) -> NDArray[np.bool_]:
    """The factors of the largest set that hangs together.

    `direction` and `vectors`: by factor, in the order of elimination. With base > 1 sets that are fixed by `base`
    factors next to each other in that order are compared: sets grow along it.
    """
    if len(direction) <= base:
        return np.ones(len(direction), np.bool_)
    if base == 1:
        _, label, size = np.unique(direction, axis=0, return_inverse=True, return_counts=True)
        return np.asarray(label.ravel() == np.argmax(size))
    return _largest_by_matrix(direction.astype(np.uint64), vectors.astype(np.uint64), p)


@jit
def _largest_by_matrix(direction: NDArray[np.uint64], vectors: NDArray[np.uint64], p: np.uint64) -> NDArray[np.bool_]:
    n, width = vectors.shape
    best, most = np.zeros(n, np.bool_), 0
    for start in range(n - width + 1):
        matrix = direction[start : start + width].copy()
        if not solve(vectors[start : start + width].copy(), matrix, p):
            continue
        moved = np.ones(n, np.bool_)
        for t in range(n):
            for a in range(width):
                total = np.uint64(0)
                for b in range(width):
                    total += vectors[t, b] * matrix[b, a]
                if total % p != direction[t, a]:
                    moved[t] = False
                    break
        if moved.sum() > most:
            best, most = moved, moved.sum()
            if 2 * most > n + width:
                break
    return best

"""Resistances from the whole information matrix, dense, as elute computed them for budgets of few factors at first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@jit
def laplacian(offsets: Ints, factor: NDArray[np.int32], w: Floats, n_factors: int) -> Floats:
    """L of cells sorted by item, dense."""
    out = np.zeros((n_factors, n_factors))
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = w[begin:end].sum()
        if total == 0.0:
            continue
        for a in range(begin, end):
            out[factor[a], factor[a]] += w[a]
            for b in range(begin, end):
                out[factor[a], factor[b]] -= w[a] * w[b] / total
    return out


def pseudo_inverse(matrix: Floats, group: NDArray[np.integer]) -> Floats:
    """L⁺, where `group` labels the connected parts of L: its null space is known, so a plain inverse does."""
    same = group[:, None] == group[None, :]
    null = same / same.sum(axis=0)
    scale = max(float(np.trace(matrix)) / len(matrix), np.finfo(float).tiny)
    return np.asarray(np.linalg.inv(matrix + scale * null) - null / scale)


def variances(inverse: Floats, reference: Ints) -> Floats:
    """The variance of every factor's log-propensity ratio to its reference."""
    own = np.arange(len(inverse))
    diagonal = np.diagonal(inverse)
    resistance = diagonal + diagonal[reference] - 2 * inverse[own, reference]
    return np.maximum(resistance, 0.0)


def rank_one_update(row: Floats, target: int, added: float) -> tuple[Floats, float]:
    """z and c of the change of L when an item with information `row` gains `added` under `target`."""
    total = row.sum()
    z = -row / total
    z[target] += 1
    return z, float(added * total / (added + total))

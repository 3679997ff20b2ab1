"""How precisely a log determines propensities: Fisher information as a weighted Laplacian.

A cell with n impressions and click probability p = r·o carries w = n·p/(1-p) about log r + log o. With W
the item × factor matrix of w, profiling the items out leaves L = diag(Wᵀ1) - Wᵀ diag(W1)⁻¹ W. The
variance of log o(s) - log o(t) is the effective resistance L⁺ss + L⁺tt - 2L⁺st; for one item seen under
two factors that is Proposition 1.

Impressions added to one cell (x, t) change L by a rank-one term: with S = Σ w(x, ·) and δ new information,
L grows by c·z·zᵀ, where z = e_t - w(x, ·)/S and c = δS/(S + δ).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def information(impressions: NDArray[np.generic] | float, probability: Floats) -> Floats:
    """w = n·p/(1-p); 0 where p is no number. p counts as at most n/(n+1): n clicks in n impressions
    cannot tell it from 1."""
    n = np.asarray(impressions, dtype=np.float64)
    p = np.minimum(np.where(probability > 0, probability, 0.0), n / (n + 1))
    return np.asarray(n * p / (1 - p))


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


def find_references(propensity: Floats, group: NDArray[np.integer]) -> Ints:
    """For each factor, the one of its group that has propensity 1, at whose scale the group is; where none has, the
    one of largest propensity (ties: the smallest)."""
    order = np.lexsort((-np.nan_to_num(propensity), propensity != 1.0, group))
    _, first, inverse = np.unique(group[order], return_index=True, return_inverse=True)
    out = np.empty(len(group), dtype=np.int64)
    out[order] = order[first][inverse]
    return out


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

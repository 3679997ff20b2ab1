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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def information(impressions: NDArray[np.generic] | float, probability: Floats) -> Floats:
    """w = n·p/(1-p); 0 where p is no number. p counts as at most n/(n+1): n clicks in n impressions
    cannot tell it from 1."""
    n = np.asarray(impressions, dtype=np.float64)
    p = np.minimum(np.where(probability > 0, probability, 0.0), n / (n + 1))
    return np.asarray(n * p / (1 - p))


def find_references(propensity: Floats, group: NDArray[np.integer]) -> Ints:
    """For each factor, the one of its group that has propensity 1, at whose scale the group is; where none has, the
    one of largest propensity (ties: the smallest)."""
    order = np.lexsort((-np.nan_to_num(propensity), propensity != 1.0, group))
    _, first, inverse = np.unique(group[order], return_index=True, return_inverse=True)
    out = np.empty(len(group), dtype=np.int64)
    out[order] = order[first][inverse]
    return out

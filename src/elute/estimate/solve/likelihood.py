"""The likelihood all models of the form p = r(x)·o(t) share (Eq. 1; the loss of Two-Tower in Appendix C.3)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit

Floats = NDArray[np.float64]


def log_likelihood(
    offsets: NDArray[np.int64],
    factor: NDArray[np.int32],
    impressions: Amounts,
    clicks: Amounts,
    relevance: Floats,
    propensity: Floats,
) -> float:
    """Σ c·log p + (n - c)·log(1 - p), in nats, with 0·log 0 = 0: -inf where a cell contradicts p = 0 or p = 1."""
    return sum(
        map_blocks(
            lambda items, own: _sum_log_likelihood(own, factor, impressions, clicks, relevance[items], propensity),
            offsets,
        )
    )


@jit
def _sum_log_likelihood(
    offsets: NDArray[np.int64],
    factor: NDArray[np.int32],
    impressions: Amounts,
    clicks: Amounts,
    relevance: Floats,
    propensity: Floats,
) -> float:
    total = 0.0
    for item in range(offsets.shape[0] - 1):
        r = relevance[item]
        for cell in range(offsets[item], offsets[item + 1]):
            p = r * propensity[factor[cell]]
            c = float(clicks[cell])
            s = float(impressions[cell]) - c
            if c > 0.0:
                total += c * math.log(p) if p > 0.0 else -math.inf
            if s > 0.0:
                total += s * math.log1p(-p) if p < 1.0 else -math.inf
    return total

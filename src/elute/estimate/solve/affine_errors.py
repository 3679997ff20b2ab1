"""Standard errors of the affine model p = α·r + β: the information about α and β, and what it leaves open of r.

A cell of n impressions carries n/(p·(1-p)) about its p. Relevance is profiled out, as in
`elute.estimate.solve.standard_errors`; the values that fix the gauge count as known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.jit import jit


@jit
def _weight(n: float, p: float) -> float:
    """Information n/(p·(1-p)) about p, which counts as no nearer to 0 and 1 than 1/(n+1)."""
    p = min(max(p, 1.0 / (n + 1.0)), n / (n + 1.0))
    return n / (p * (1.0 - p))


@jit
def affine_information(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    alpha: Floats,
    beta: Floats,
    relevance: Floats,
    row: Codes,
    size: int,
) -> Floats:
    """About α (rows 0 to n-1 of `row`) and β (the rest), relevance profiled out; row -1 counts as known."""
    out = np.zeros((size, size))
    n = alpha.shape[0]
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        for cell in range(begin, end):
            t = factor[cell]
            total += _weight(float(impressions[cell]), alpha[t] * relevance[item] + beta[t]) * alpha[t] ** 2
        for a in range(2 * begin, 2 * end):
            t = factor[a // 2]
            i = row[t + n * (a % 2)]
            if i < 0:
                continue
            w = _weight(float(impressions[a // 2]), alpha[t] * relevance[item] + beta[t])
            by_i = 1.0 if a % 2 else relevance[item]
            for b in range(2 * begin, 2 * end):
                u = factor[b // 2]
                j = row[u + n * (b % 2)]
                if j < 0:
                    continue
                by_j = 1.0 if b % 2 else relevance[item]
                if a // 2 == b // 2:
                    out[i, j] += w * by_i * by_j
                if total > 0.0:
                    v = _weight(float(impressions[b // 2]), alpha[u] * relevance[item] + beta[u])
                    out[i, j] -= (w * alpha[t] * by_i) * (v * alpha[u] * by_j) / total
    return out


@jit
def affine_item_variances(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    alpha: Floats,
    beta: Floats,
    relevance: Floats,
    row: Codes,
    covariance: Floats,
) -> Floats:
    """Of r: 1/S + qᵀVq, with S the information about r and q how r answers to each α and β."""
    out = np.full(relevance.shape[0], np.nan)
    n = alpha.shape[0]
    for item in range(out.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        answer = np.zeros(2 * (end - begin))
        for cell in range(begin, end):
            t = factor[cell]
            w = _weight(float(impressions[cell]), alpha[t] * relevance[item] + beta[t]) * alpha[t]
            total += w * alpha[t]
            answer[2 * (cell - begin)] = w * relevance[item]
            answer[2 * (cell - begin) + 1] = w
        if total == 0.0:
            continue
        spread = 0.0
        for a in range(answer.shape[0]):
            i = row[factor[begin + a // 2] + n * (a % 2)]
            for b in range(answer.shape[0]):
                j = row[factor[begin + b // 2] + n * (b % 2)]
                if i >= 0 and j >= 0:
                    spread += answer[a] / total * covariance[i, j] * answer[b] / total
        out[item] = 1.0 / total + spread
    return out

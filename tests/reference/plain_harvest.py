"""Intervention harvesting written plainly: sets of items for each pair of factors, scipy's general optimiser.

A table of cells is a list of (item, factor, impressions, clicks).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import minimize


def pairs(table, equal):
    """{(k, k'): (Σ w·rate at k, Σ w·rate at k', Σ w)} over the items seen under both, k < k'."""
    cells = {(x, t): (n, c) for x, t, n, c in table}
    factors = sorted({t for _, t in cells})
    out = {}
    for k, j in itertools.combinations(factors, 2):
        shared = [x for x, t in cells if t == k and (x, j) in cells]
        if shared:
            w = [1 if equal else 1 / (1 / cells[x, k][0] + 1 / cells[x, j][0]) for x in shared]
            rates = [[cells[x, t][1] / cells[x, t][0] for x in shared] for t in (k, j)]
            out[k, j] = (*(math.fsum(a * b for a, b in zip(w, rate, strict=True)) for rate in rates), math.fsum(w))
    return out


def all_pairs(table, equal):
    """log o, at the scale o(0) = 1, where Σ A·log(o·R) + (W - A)·log(1 - o·R) is largest."""
    sets = list(pairs(table, equal).items())
    factors = 1 + max(t for _, t, _, _ in table)
    scale = sum(w for _, (_, _, w) in sets)

    def loss(x):
        total, slope = 0.0, np.zeros_like(x)
        for number, ((k, j), (at_k, at_j, w)) in enumerate(sets):
            for t, a in ((k, at_k), (j, at_j)):
                p = min(math.exp(x[t] + x[factors + number]), 1 - 1e-12)
                total += a * math.log(p) + (w - a) * math.log(1 - p)
                slope[[t, factors + number]] += a - (w - a) * p / (1 - p)
        return -total / scale, -slope / scale

    start = np.full(factors + len(sets), -1.0)
    end = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 10_000})
    return end.x[:factors] - end.x[0]

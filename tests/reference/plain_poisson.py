"""A Poisson regression with a log link and a penalty, over a whole design matrix, and its errors from clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fit_poisson(x: Floats, shown: Floats, clicked: Floats, penalty: Floats) -> Floats:
    """Coefficients, by iteratively reweighted least squares."""
    level = np.full(len(x), np.log(clicked.sum() / shown.sum()))
    beta: Floats = np.asarray(np.linalg.lstsq(x, level, rcond=None)[0], np.float64)
    for _ in range(200):
        mu = shown * np.exp(x @ beta)
        working = x @ beta + (clicked - mu) / mu
        beta = np.asarray(np.linalg.solve(x.T @ (x * mu[:, None]) + penalty, x.T @ (mu * working)), np.float64)
    return beta


def find_clustered_covariance(
    x: Floats, shown: Floats, clicked: Floats, penalty: Floats, beta: Floats, cluster: NDArray[np.int64]
) -> Floats:
    """The sandwich: what each cluster adds to the score, between inverses of the information."""
    mu = shown * np.exp(x @ beta)
    bread = np.linalg.inv(x.T @ (x * mu[:, None]) + penalty)
    scores = [((clicked - mu)[cluster == one]) @ x[cluster == one] for one in np.unique(cluster)]
    number = len(scores)
    return np.asarray(bread @ sum(np.outer(s, s) for s in scores) @ bread * number / (number - 1))

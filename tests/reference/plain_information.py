"""Mutual information by definition: truths by quadrature, and estimators as loops over pairs of points."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
from scipy import integrate
from scipy.special import digamma
from scipy.stats import norm


def of_correlation(rho: float) -> float:
    return -0.5 * math.log1p(-(rho**2))


def gaussian_pair(n, rho, rng):
    """X, Y of correlation rho, and the log density ratio at every pair."""
    y = rng.standard_normal(n)
    x = rho * y + math.sqrt(1 - rho**2) * rng.standard_normal(n)
    return x, y, norm.logpdf(x, rho * y, math.sqrt(1 - rho**2)) - norm.logpdf(x)


@cache
def _square(noise: float):
    """A grid of x, and there the density of Y² + noise · N(0, 1), Y standard normal, by the trapezoidal rule over Y."""
    grid = np.linspace(-9 * noise, 60, 6_001)
    y = np.linspace(0, 9, 1_801)
    weight = 2 * norm.pdf(y) * (y[1] - y[0])
    weight[0] /= 2
    density = np.concatenate([norm.pdf(part[:, None], y**2, noise) @ weight for part in np.array_split(grid, 20)])
    return grid, np.maximum(density, 1e-300)


def of_square(noise: float) -> float:
    """I(Y² + noise · N; Y) = h(X) - h(X | Y)."""
    grid, density = _square(noise)
    return float(-integrate.simpson(density * np.log(density), x=grid) - norm.entropy(0, noise))


def square_pair(n, noise, rng):
    """X = Y² + noise, Y, and the log density ratio at every pair."""
    y = rng.standard_normal(n)
    x = y**2 + noise * rng.standard_normal(n)
    grid, density = _square(noise)
    return x, y, norm.logpdf(x, y**2, noise) - np.interp(x, grid, np.log(density))


def kraskov(x, y, k):
    """The first estimator of Kraskov et al., pair by pair; closer means closer by more than rounding."""
    n, total = len(x), 0.0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        reach = sorted(max(abs(x[j] - x[i]), abs(y[j] - y[i])) for j in others)[k - 1]
        near_x = sum(abs(x[j] - x[i]) < reach * (1 - 1e-9) for j in others)
        near_y = sum(abs(y[j] - y[i]) < reach * (1 - 1e-9) for j in others)
        total += digamma(k) + digamma(n) - digamma(near_x + 1) - digamma(near_y + 1)
    return total / n


def plug_in(x, y):
    """H(X) + H(Y) - H(X, Y) of the frequencies, each entropy with Miller's correction (cells - 1) / (2n)."""

    def entropy(values):
        counts = Counter(values)
        return -sum(c / len(values) * math.log(c / len(values)) for c in counts.values()) + (len(counts) - 1) / (
            2 * len(values)
        )

    return entropy(list(x)) + entropy(list(y)) - entropy(list(zip(x, y, strict=True)))

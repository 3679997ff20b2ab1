"""Tests of assumptions written plainly: enumeration, dense matrices, general optimisers.

A table of cells is a list of (item, factor, impressions, clicks).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import least_squares
from scipy.special import xlogy

from reference.plain_pbm import Table, design


def splits(shown: list[int], total: int, p: list[float]) -> dict[tuple[int, ...], float]:
    """Every way in which `total` clicks can fall on an item's cells, with its probability given the total."""
    found = {}
    for way in itertools.product(*(range(n + 1) for n in shown)):
        if sum(way) == total:
            terms = (math.comb(n, c) * q**c * (1 - q) ** (n - c) for n, c, q in zip(shown, way, p, strict=True))
            found[way] = math.prod(terms)
    every = sum(found.values())
    return {way: value / every for way, value in found.items()}


def deviance(table: Table, r, o) -> float:
    total = 0.0
    for item, factor, n, c in table:
        p = r[item] * o[factor]
        total += 2 * float(xlogy(c, c / (n * p)) + xlogy(n - c, (n - c) / (n * (1 - p))))
    return total


def score_statistic(table: Table, r, o, z) -> float:
    """Of b = 0 in log p = log r + log o + Σ_j b_jt·z_jx: uᵀV⁺u with the whole information matrix of all parameters."""
    x = design(table)
    items, factors = len(r), len(o)
    extra = np.zeros((len(table), z.shape[1] * factors))
    for cell, (item, factor, _, _) in enumerate(table):
        for j in range(z.shape[1]):
            extra[cell, j * factors + factor] = z[item, j]
    p = np.array([r[item] * o[factor] for item, factor, _, _ in table])
    n, c = np.array([row[2:] for row in table], float).T
    slope, w = (c - n * p) / (1 - p), n * p / (1 - p)
    assert x.shape[1] == items + factors
    nuisance = np.linalg.pinv(x.T @ (w[:, None] * x))
    cross = extra.T @ (w[:, None] * x)
    u = extra.T @ slope - cross @ nuisance @ (x.T @ slope)
    v = extra.T @ (w[:, None] * extra) - cross @ nuisance @ cross.T
    return float(u @ np.linalg.pinv(v, rcond=1e-9, hermitian=True) @ u)


def mantel_haenszel(table: Table) -> float:
    """The generalised statistic, one item after the other, covariances from all ways to draw clicks by hand."""
    factors = 1 + max(row[1] for row in table)
    u, v = np.zeros(factors), np.zeros((factors, factors))
    for item in {row[0] for row in table}:
        rows = [row for row in table if row[0] == item]
        shown = [row[2] for row in rows]
        total = sum(row[3] for row in rows)
        ways = splits(shown, total, [0.5] * len(rows))
        at = [row[1] for row in rows]
        mean = sum(np.array(way) * p for way, p in ways.items())
        square = sum(np.outer(way, way) * p for way, p in ways.items())
        u[at] += np.array([row[3] for row in rows]) - mean
        v[np.ix_(at, at)] += square - np.outer(mean, mean)
    return float(u @ np.linalg.pinv(v, rcond=1e-9, hermitian=True) @ u)


def least_line_squares(table: Table, weight, start) -> float:
    """The least Σ w·(c/n - α_t·u_x - β_t)² that a general optimiser finds."""
    items, factors = 1 + max(row[0] for row in table), 1 + max(row[1] for row in table)
    item, factor, n, c = np.array(table, float).T
    item, factor = item.astype(int), factor.astype(int)

    def residual(values):
        alpha, beta, u = np.split(values, [factors, 2 * factors])
        return np.sqrt(weight) * (c / n - alpha[factor] * u[item] - beta[factor])

    found = least_squares(residual, np.concatenate(start), method="trf", xtol=1e-12, ftol=1e-12, gtol=1e-12)
    assert len(found.x) == 2 * factors + items
    return 2 * float(found.cost)

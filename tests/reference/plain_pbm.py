"""The position-based model written plainly: loops over cells, scipy's general optimisers, dense matrices.

A table of cells is a list of (item, factor, impressions, clicks).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import LinearConstraint, linprog, minimize

Table = list[tuple[int, int, int, int]]


def log_likelihood(table: Table, r, o) -> float:
    total = 0.0
    for item, factor, n, c in table:
        p = r[item] * o[factor]
        if c:
            total += c * math.log(p) if p > 0 else -math.inf
        if n - c:
            total += (n - c) * math.log(1 - p) if p < 1 else -math.inf
    return total


def design(table: Table):
    """One row a cell: which log r and which log o add up to its log p."""
    items, factors = 1 + max(row[0] for row in table), 1 + max(row[1] for row in table)
    x = np.zeros((len(table), items + factors))
    for cell, (item, factor, _, _) in enumerate(table):
        x[cell, item] = x[cell, items + factor] = 1
    return x


def highest_likelihood(table: Table, seed: int) -> float:
    """What a general constrained optimiser reaches over log r and log o, with log p at most 0 and at least -30."""
    x = design(table)
    n, c = np.array([row[2:] for row in table], float).T

    def loss(parameters):
        eta = np.minimum(x @ parameters, -1e-12)
        p = np.exp(eta)
        return -(c @ eta + (n - c) @ np.log1p(-p)), -x.T @ (c - (n - c) * p / (1 - p))

    start = np.random.default_rng(seed).uniform(-2, -0.5, x.shape[1])
    bounds = LinearConstraint(x, -30, 0)
    return -minimize(loss, start, jac=True, method="SLSQP", constraints=[bounds], options={"maxiter": 2000}).fun


def comparable(table: Table, s: int, t: int) -> bool:
    """Whether the likelihood bounds log o(s) - log o(t) from both sides, by linear programmes over directions.

    A direction along which the likelihood does not fall keeps clicked cells and raises no other.
    """
    x = design(table)
    items = 1 + max(row[0] for row in table)
    clicked = np.array([row[3] > 0 for row in table])
    aim = np.zeros(x.shape[1])
    aim[items + s], aim[items + t] = 1, -1
    for sign in (1, -1):
        found = linprog(
            sign * aim,
            A_ub=x[~clicked] if (~clicked).any() else None,
            b_ub=np.zeros((~clicked).sum()) if (~clicked).any() else None,
            A_eq=x[clicked],
            b_eq=np.zeros(clicked.sum()),
            bounds=(-1, 1),
        )
        if found.fun < -1e-6:
            return False
    return True


def standard_errors(table: Table, r, o, reference: int):
    """Of log r and log o with log o(reference) known: the inverse of the whole Fisher information matrix."""
    x = design(table)
    items = len(r)
    information = np.zeros((x.shape[1], x.shape[1]))
    for row, (item, factor, n, _) in zip(x, table, strict=True):
        p = r[item] * o[factor]
        information += n * p / (1 - p) * np.outer(row, row)
    keep = np.arange(x.shape[1]) != items + reference
    errors = np.zeros(x.shape[1])
    errors[keep] = np.sqrt(np.diag(np.linalg.inv(information[keep][:, keep])))
    return errors[:items], errors[items:]


def em_step(table: Table, r, o):
    """Appendix C.3: every impression by itself."""
    relevant: list[list[float]] = [[] for _ in r]
    observed: list[list[float]] = [[] for _ in o]
    for item, factor, n, c in table:
        skip = 1 - o[factor] * r[item]
        relevant[item] += [1.0] * c + [(1 - o[factor]) * r[item] / skip] * (n - c)
        observed[factor] += [1.0] * c + [(1 - r[item]) * o[factor] / skip] * (n - c)
    return np.array([np.mean(v) for v in relevant]), np.array([np.mean(v) for v in observed])


def squared_error(table: Table, r, o) -> float:
    """Appendix C.3, the loss of DLA, summed over impressions."""
    return sum(
        c * (1 - r[item] * o[factor]) ** 2 + (n - c) * (r[item] * o[factor]) ** 2 for item, factor, n, c in table
    )

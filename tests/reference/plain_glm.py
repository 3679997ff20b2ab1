"""A binomial regression with a log link, one intercept an item and a general design of factors: written plainly.

A table of cells is a list of (item, factor, impressions, clicks); `design` has one row a factor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, linprog, minimize

Table = list[tuple[int, int, int, int]]
Floats = NDArray[np.float64]


def build_rows(table: Table, design: Floats) -> Floats:
    """One row a cell, over items and then effects."""
    items = 1 + max(row[0] for row in table)
    return np.array([[*np.eye(items)[item], *design[factor]] for item, factor, _, _ in table])


def find_highest_likelihood(table: Table, design: Floats, seed: int) -> float:
    """What a general constrained optimiser reaches, with log p at most 0 and at least -30."""
    x = build_rows(table, design)
    n, c = np.array([row[2:] for row in table], float).T

    def lose(parameters: Floats) -> tuple[float, Floats]:
        eta = np.minimum(x @ parameters, -1e-12)
        p = np.exp(eta)
        return -float(c @ eta + (n - c) @ np.log1p(-p)), -x.T @ (c - (n - c) * p / (1 - p))

    start = np.zeros(x.shape[1])
    start[: x.shape[1] - design.shape[1]] = np.random.default_rng(seed).uniform(
        -2.5, -1.5, x.shape[1] - design.shape[1]
    )
    bounds = LinearConstraint(x, -30, 0)
    return -float(minimize(lose, start, jac=True, method="SLSQP", constraints=[bounds], options={"maxiter": 3000}).fun)


def is_finite(table: Table, design: Floats, s: int, t: int) -> bool:
    """Whether the likelihood bounds log o(s) - log o(t) from both sides, by linear programmes over directions: along
    one that it does not fall on, clicked cells stay and no other grows."""
    x = build_rows(table, design)
    clicked = np.array([row[3] > 0 for row in table])
    aim = np.concatenate((np.zeros(x.shape[1] - design.shape[1]), design[s] - design[t]))
    for sign in (1, -1):
        found = linprog(
            sign * aim,
            A_ub=x[~clicked] if (~clicked).any() else None,
            b_ub=np.zeros((~clicked).sum()) if (~clicked).any() else None,
            A_eq=x[clicked] if clicked.any() else None,
            b_eq=np.zeros(clicked.sum()) if clicked.any() else None,
            bounds=(-1, 1),
        )
        if found.fun < -1e-6:
            return False
    return True


def find_covariance(table: Table, design: Floats, r: Floats, o: Floats) -> Floats:
    """Of items and effects: the pseudo-inverse of the whole Fisher information matrix."""
    x = build_rows(table, design)
    n = np.array([row[2] for row in table], float)
    p = np.array([r[item] * o[factor] for item, factor, _, _ in table])
    return np.asarray(np.linalg.pinv(x.T @ (x * (n * p / (1 - p))[:, None]), rcond=1e-12))

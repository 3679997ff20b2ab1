"""Log-linear clicks with one effect a group, which conditioning on the group's clicks takes away.

A row of group g with n impressions has n·exp(a_g + x·β) clicks on average. Given the clicks of its group, rows share
them as a multinomial with weights n·exp(x·β), whatever a_g is; the likelihood is that of a Poisson fit with an effect a
group, and as that is right as soon as means are: clicks need neither be Poisson nor independent. Three fits are of this
form. Groups are factors and x a spline in the score (pooled), queries and both (within lists), or items and factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

RIDGE = 1e-5
"""Of every coefficient: what the clicks leave open stays where it is."""

_STEPS, _TOLERANCE = 60, 1e-9


class ClickShares(NamedTuple):
    """Rows by group: `design` has their x, sparse where there are many rows or columns."""

    group: Codes
    design: Floats | sparse.csr_array
    shown: Floats
    clicked: Floats


class Sharing(NamedTuple):
    """`coefficients`: β. `expected`: clicks by row. `means`: by group, the mean x of its clicks. `information`: of β,
    without penalties; `inverse`: of it with them."""

    rows: ClickShares
    coefficients: Floats
    expected: Floats
    means: Floats | sparse.csr_array
    information: Floats
    inverse: Floats
    iterations: int
    converged: bool

    def project(self, cluster: Codes, contrasts: Floats) -> Floats:
        """By cluster and contrast: how clicks of the cluster move `contrasts` (coefficient, contrast) of β."""
        along = self.inverse @ contrasts
        slope = self.rows.design @ along - (self.means @ along)[self.rows.group]
        rest = self.rows.clicked - self.expected
        return np.stack([add_up(cluster, rest * one) for one in slope.T], axis=1)


def add_up(code: Codes, amounts: Floats, size: int = 0) -> Floats:
    """Sums by code, of which there are `size` or more."""
    return np.bincount(code, amounts, minlength=size).astype(np.float64)


def fit_shares(rows: ClickShares, penalty: Floats, start: Floats | None = None) -> Sharing:
    """The most likely β under a quadratic penalty, by Newton's method; the likelihood is concave."""
    width = rows.design.shape[1]
    held = penalty + RIDGE * np.eye(width)
    total = add_up(rows.group, rows.clicked)
    beta = np.zeros(width) if start is None else start.copy()
    value, expected = _measure(rows, total, beta, held)
    steps, gain = 0, np.inf
    while gain >= _TOLERANCE and steps < _STEPS:
        steps += 1
        information, _ = _inform(rows, total, expected)
        slope = rows.design.T @ (rows.clicked - expected) - held @ beta
        move = np.linalg.solve(information + held, slope)
        gain = float(slope @ move)
        length = 1.0
        while True:
            tried, then = _measure(rows, total, beta + length * move, held)
            if tried >= value + 1e-4 * length * gain or length < 1e-6:
                break
            length /= 2
        beta, value, expected = beta + length * move, tried, then
    return settle(rows, beta, penalty, steps, gain < 1e-6 * (1 + abs(value)))


def settle(rows: ClickShares, beta: Floats, penalty: Floats, iterations: int, converged: bool) -> Sharing:
    """What β says of these rows, which may be parts of those that it was fitted to, in the same groups."""
    _, expected = _measure(rows, add_up(rows.group, rows.clicked), beta, None)
    information, means = _inform(rows, add_up(rows.group, rows.clicked), expected)
    inverse = np.asarray(np.linalg.inv(information + penalty + RIDGE * np.eye(len(beta))), np.float64)
    return Sharing(rows, beta, expected, means, information, inverse, iterations, converged)


def measure_shares(rows: ClickShares, beta: Floats) -> float:
    """The log-likelihood of other rows."""
    return _measure(rows, add_up(rows.group, rows.clicked), beta, None)[0]


def _measure(rows: ClickShares, total: Floats, beta: Floats, held: Floats | None) -> tuple[float, Floats]:
    eta = rows.design @ beta
    eta = eta - eta.max(initial=0.0)
    weight = rows.shown * np.exp(eta)
    sums = add_up(rows.group, weight, len(total))
    clicked = total > 0
    value = float(rows.clicked @ eta) - float(total[clicked] @ np.log(sums[clicked]))
    if held is not None:
        value -= 0.5 * float(beta @ held @ beta)
    return value, weight * np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0)[rows.group]


def _inform(rows: ClickShares, total: Floats, expected: Floats) -> tuple[Floats, Floats | sparse.csr_array]:
    """The information of β, and the mean x of each group."""
    share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    if isinstance(rows.design, np.ndarray):
        weighed = rows.design * expected[:, None]
        sums = np.stack([add_up(rows.group, one, len(total)) for one in weighed.T], axis=1)
        means = sums * share[:, None]
        return rows.design.T @ weighed - means.T @ sums, means
    belongs = sparse.csr_array((expected, (rows.group, np.arange(len(expected)))), (len(total), len(expected)))
    sums = belongs @ rows.design
    means = sparse.csr_array(sparse.diags_array(share) @ sums)
    weighed = sparse.diags_array(expected) @ rows.design
    return (rows.design.T @ weighed - means.T @ sums).toarray(), means

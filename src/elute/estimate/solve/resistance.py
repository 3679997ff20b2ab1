"""Variances of log propensities against their references, for any number of factors: exact, or drawn.

Up to `DENSE` factors the covariance V of log o is computed, references grounded. Beyond, draws u = L⁺·Bᵀz have it (as
in `standard_errors`), solved for by approximate elimination (`elute.kernels.elimination`). Given all other factors,
log o(k) has variance 1/L_kk and mean u_k - (L·u)_k/L_kk, and L·u = Bᵀz is at hand; so

    Var(log o(k) - log o(ref)) = 1/L_kk + E(u_k - (Bᵀz)_k/L_kk - u_ref)²

and only the second part has to be drawn. From J draws a standard error is off by (1 - h)/√(2J) of itself, h the share of
1/L_kk in the variance: near 1 for factors that hang on little of their own, which have the largest errors. Draws go on
until that is 5% at most for 95% of the factors and for the one of largest error: 32 to 224 draws, and at 224 it is
below 5% for all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.estimate.solve.laplacian import diagonal, grounded_laplacian
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.standard_errors import invert_scaled, link_informed, project
from elute.identify.information import find_references
from elute.kernels.elimination import Solver
from elute.kernels.unionfind import find_roots, singletons

DENSE = 600
OFF = 0.05
"""Share of itself by which a drawn standard error may be off, as a standard deviation."""

MOST_DRAWS = 200
_AT_ONCE = 32
_LEFT = 0.01
"""A tenth of a standard error, over all factors together."""


class WeightedCells(NamedTuple):
    """Cells sorted by item, with the information each carries."""

    offsets: NDArray[np.int64]
    factor: Codes
    w: Floats


class Ground(NamedTuple):
    """By factor: its `reference`, and whether information ties it to that. A factor without any is not."""

    reference: NDArray[np.int64]
    tied: NDArray[np.bool_]

    @property
    def free(self) -> NDArray[np.bool_]:
        """Tied to another."""
        return np.asarray(self.tied & (self.reference != np.arange(len(self.reference))))


def find_ground(cells: WeightedCells, propensity: Floats, label: NDArray[np.integer]) -> Ground:
    """References of the parts that `label` names."""
    parent = singletons(len(propensity))
    link_informed(*cells, parent)
    group, reference = find_roots(parent), find_references(propensity, label)
    informed = np.bincount(cells.factor, weights=cells.w, minlength=len(propensity)) > 0
    return Ground(reference, (group == group[reference]) & informed)


def invert_grounded(cells: WeightedCells, ground: Ground) -> Floats:
    """V of all factors; 0 where one is a reference or untied."""
    free = np.flatnonzero(ground.free)
    row = np.full(len(ground.reference), -1, np.int32)
    row[free] = np.arange(len(free))
    out = np.zeros((len(row), len(row)))
    out[np.ix_(free, free)] = invert_scaled(grounded_laplacian(*cells, row, len(free)))
    return out


class Drawn(NamedTuple):
    """`draws` of log o by factor, one a column, and `variance` against the reference, estimated from them."""

    draws: Floats
    variance: Floats
    off: Floats
    """By factor: the share of itself by which its standard error may be off, as a standard deviation."""


def draw(solver: Solver, ground: Ground, number: int, rng: np.random.Generator, left: float) -> Drawn:
    """So many draws; `left`: the energy that a solution may lack, in squared standard errors summed over factors."""
    n, free, cells = len(ground.reference), ground.free, (solver.offsets, solver.factor, solver.w)
    noise = np.empty((n, number))
    for column in range(number):
        signs = rng.integers(2, size=len(solver.w), dtype=np.int8) * 2.0 - 1.0  # as good as normal ones
        noise[:, column] = project(*cells, signs, n)
    u = solver.solve(noise, left / max(int(free.sum()), 1))
    own = np.where(free, 1.0 / np.where(free, diagonal(*cells, n), 1.0), 0.0)
    others = ((u - own[:, None] * noise - u[ground.reference]) ** 2).mean(axis=1)
    variance = np.where(free, own + others, 0.0)
    off = np.divide(others, variance, out=np.zeros(n), where=free) / np.sqrt(2 * number)
    return Drawn(u, variance, off)


def find_variances(cells: WeightedCells, ground: Ground, seed: int = 0) -> Floats:
    """By factor, against its reference; NaN where nothing ties the two."""
    free = ground.free
    if free.sum() <= DENSE:
        return np.where(ground.tied, np.diagonal(invert_grounded(cells, ground)), np.nan)
    rng, total, draws, off = np.random.default_rng(seed), np.zeros(len(free)), 0, np.inf
    solver = Solver(*cells, len(free), seed)
    while off > OFF and draws < MOST_DRAWS:
        found = draw(solver, ground, _AT_ONCE, rng, _LEFT)
        total += found.variance
        draws += _AT_ONCE
        shares = found.off * np.sqrt(_AT_ONCE / draws)
        off = max(float(np.quantile(shares[free], 0.95)), float(shares[total.argmax()]))
    return np.where(ground.tied, total * _AT_ONCE / draws, np.nan)

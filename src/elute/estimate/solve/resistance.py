"""Variances of log propensities against their references, for any number of factors: exact, or drawn.

Up to `DENSE` factors the covariance V of log o is computed, references grounded. Beyond, draws u = L⁺·Bᵀz have it (as
in `standard_errors`), solved for by approximate elimination (`elute.kernels.solver`). Given all other factors,
log o(k) has variance 1/L_kk and mean u_k - (L·u)_k/L_kk, and L·u = Bᵀz is at hand; so

    Var(log o(k) - log o(ref)) = 1/L_kk + E(u_k - (Bᵀz)_k/L_kk - u_ref)²

and only the second part has to be drawn. From J draws a standard error is off by (1 - h)/√(2J) of itself, h the share
of 1/L_kk in the variance: near 1 for factors that hang on little of their own, which have the largest errors. Draws go
on until that is 5% at most for 95% of the factors and for the one of largest error: 32 to 224 draws, and at 224 it is
below 5% for all.

Where a formula ties factors V = X(XᵀLX)⁻¹Xᵀ. Up to `DENSE_EFFECTS` effects that is computed for any number of factors;
beyond, all of it is drawn.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from elute.estimate.solve.effect_errors import inform_effects, quadratic, tie
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.laplacian import conjugate_columns, diagonal, grounded_laplacian, multiply_columns
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.standard_errors import invert_scaled, link_informed, project
from elute.identify.effects.design import EffectDesign
from elute.identify.information import find_references
from elute.kernels.solver import Solver
from elute.kernels.unionfind import find_roots, singletons

DENSE = 600
DENSE_EFFECTS = 3_000
OFF = 0.05
"""Share of itself by which a drawn standard error may be off, as a standard deviation."""

MOST_DRAWS = 200
_STEPS = 10_000
_AT_ONCE = 32
_LEFT = 0.01
"""Energy that a solution may lack: a tenth of a standard error, over all factors together."""


class WeightedCells(NamedTuple):
    """Cells sorted by item, with the information each carries."""

    offsets: NDArray[np.int64]
    factor: Codes
    w: Floats


class Ground(NamedTuple):
    """By factor: its `reference`, and whether information ties it to that. A factor without any is not. `x`: where a
    formula ties factors, the effects that each is the sum of."""

    reference: NDArray[np.int64]
    tied: NDArray[np.bool_]
    x: csr_array | None = None

    @property
    def free(self) -> NDArray[np.bool_]:
        """Tied to another."""
        return np.asarray(self.tied & (self.reference != np.arange(len(self.reference))))


def find_ground(
    cells: WeightedCells, propensity: Floats, label: NDArray[np.integer], design: EffectDesign | None = None
) -> Ground:
    """References of the parts that `label` names; `design`: of the formula that ties factors, if one does."""
    reference = find_references(propensity, label)
    if design is not None:
        span, tied = tie(design, *cells, reference)
        return Ground(reference, tied, EffectSpace.of(design, span).x)
    parent = singletons(len(propensity))
    link_informed(*cells, parent)
    group = find_roots(parent)
    informed = np.bincount(cells.factor, weights=cells.w, minlength=len(propensity)) > 0
    return Ground(reference, (group == group[reference]) & informed)


def invert_grounded(cells: WeightedCells, ground: Ground) -> Floats:
    """V of all factors; 0 where one is a reference or untied."""
    if ground.x is not None:
        rows = csr_array((ground.x - ground.x[ground.reference]) * ground.tied[:, None])
        return np.asarray(rows @ (rows @ invert_scaled(inform_effects(*cells, ground.x))).T)
    free = np.flatnonzero(ground.free)
    row = np.full(len(ground.reference), -1, np.int32)
    row[free] = np.arange(len(free))
    out = np.zeros((len(row), len(row)))
    out[np.ix_(free, free)] = invert_scaled(grounded_laplacian(*cells, row, len(free)))
    return out


class TiedSolver:
    """Solves as `Solver` does, where a formula ties factors: V·b. Few effects have a matrix that is factorised once."""

    def __init__(self, cells: WeightedCells, x: csr_array):
        self.offsets, self.factor, self.w = cells
        self.n_factors, self._x = x.shape[0], x
        self._scale = x.power(2).T @ diagonal(*cells, self.n_factors)
        self._factorised = None
        if x.shape[1] <= DENSE_EFFECTS:
            root = np.sqrt(np.where(self._scale > 0, self._scale, 1.0))
            with suppress(LinAlgError):  # singular but for rounding: steps do
                self._factorised = root, cho_factor(inform_effects(*cells, x) / np.outer(root, root))

    def solve(self, b: Floats, left: float) -> Floats:
        """V·b for the columns of `b`. `left`: the share of a column's energy bᵀVb that may be missing."""
        x, right = self._x, np.asarray(self._x.T @ b)
        if self._factorised is not None:
            root, matrix = self._factorised
            return np.asarray(x @ (cho_solve(matrix, right / root[:, None]) / root[:, None]))

        def product(v: Floats) -> Floats:
            return np.asarray(x.T @ multiply_columns(self.offsets, self.factor, self.w, x @ v))

        return np.asarray(x @ conjugate_columns(product, right, self._scale, left, _STEPS))


AnySolver = Solver | TiedSolver


def make_solver(cells: WeightedCells, ground: Ground, seed: int = 0) -> AnySolver:
    """For V·b, whether a formula ties factors or not."""
    return Solver(*cells, len(ground.tied), seed) if ground.x is None else TiedSolver(cells, ground.x)


def draw_noise(solver: AnySolver, number: int, rng: np.random.Generator) -> Floats:
    """Bᵀz, one a column."""
    out = np.empty((solver.n_factors, number))
    for column in range(number):
        signs = rng.integers(2, size=len(solver.w), dtype=np.int8).astype(np.float64) * 2.0 - 1.0  # as good as normal
        out[:, column] = project(solver.offsets, solver.factor, solver.w, signs, solver.n_factors)
    return out


def estimate_variances(solver: AnySolver, ground: Ground, noise: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Variances from draws u = L⁺·noise, and how much of each had to be drawn: 1 - h."""
    free = ground.free
    if ground.x is not None:
        return np.where(free, ((u - u[ground.reference]) ** 2).mean(axis=1), 0.0), free.astype(np.float64)
    scale = np.where(free, diagonal(solver.offsets, solver.factor, solver.w, len(free)), 1.0)
    own = np.where(free, 1.0 / scale, 0.0)
    others = ((u - own[:, None] * noise - u[ground.reference]) ** 2).mean(axis=1)
    variance = np.where(free, own + others, 0.0)
    return variance, np.divide(others, variance, out=np.zeros(len(free)), where=free)


def find_variances(cells: WeightedCells, ground: Ground, seed: int = 0) -> Floats:
    """By factor, against its reference; NaN where nothing ties the two."""
    free = ground.free
    if ground.x is not None and ground.x.shape[1] <= DENSE_EFFECTS:
        rows = csr_array(ground.x - ground.x[ground.reference])
        covariance = invert_scaled(inform_effects(*cells, ground.x))
        variance = quadratic(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, covariance)
        return np.where(ground.tied, variance, np.nan)
    if free.sum() <= DENSE:
        return np.where(ground.tied, np.diagonal(invert_grounded(cells, ground)), np.nan)
    rng, solver = np.random.default_rng(seed), make_solver(cells, ground, seed)
    total, draws, off = np.zeros(len(free)), 0, np.inf
    while off > OFF and draws < MOST_DRAWS:
        noise = draw_noise(solver, _AT_ONCE, rng)
        variance, drawn = estimate_variances(solver, ground, noise, solver.solve(noise, _LEFT / free.sum()))
        total += variance * _AT_ONCE
        draws += _AT_ONCE
        off = max(float(np.quantile(drawn[free], 0.95)), float(drawn[total.argmax()])) / np.sqrt(2 * draws)
    return np.where(ground.tied, total / draws, np.nan)

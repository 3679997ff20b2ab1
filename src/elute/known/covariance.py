"""How surely propensities are known if clicks are independent: the covariance of their logarithms.

As in `elute.estimate.solve.standard_errors`, with weights for items that stand for others. Up to `DENSE` factors the
covariance itself; beyond, draws that have it, fewer than a fit takes: a standard error from `DRAWS` of them is off by
about 1/√(2·`DRAWS`) of itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from elute._util.threads import map_threads
from elute.cells.counts import Cells
from elute.estimate.solve.effect_errors import find_effect_covariance, quadratic, tie
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.laplacian import conjugate_gradients, diagonal, grounded_laplacian, multiply
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.standard_errors import invert_scaled, link_informed, project
from elute.identify.effects.design import EffectDesign
from elute.identify.information import find_references
from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, singletons

DENSE = 600
"""As in `elute.known.sample`, where fewer cells are used beyond."""

DRAWS = 24

_SEED = 0
_AT_ONCE = 128
"""Clusters whose effects are computed at a time: they stay in a core's cache."""

_SHARE, _STEPS = 1e-4, 2_000


class Covariance(NamedTuple):
    """Of log o to the component's reference, by factor: its variance, NaN where nothing ties the two; `row` of the
    factors in `matrix`, which is empty where there are too many of them. Where a formula ties factors, `design` has for
    each a row of what is then estimated, less its reference's, and `effects` is the covariance of that."""

    variance: Floats
    reference: NDArray[np.int64]
    row: Codes
    matrix: Floats
    design: csr_array | None = None
    effects: Floats | None = None

    @property
    def held(self) -> bool:
        """Whether all of it is here, not only draws."""
        return bool(len(self.matrix)) or self.effects is not None

    @property
    def relative_error(self) -> float:
        """Of a standard error, about; 0 where none was drawn."""
        return 0.0 if self.held or not (self.row >= 0).any() else (2 * DRAWS) ** -0.5

    def multiply(self, contrast: Floats) -> Floats:
        """V·c by factor, 0 at references and where nothing ties a factor; only where it is `held`."""
        out, inside = np.zeros(len(self.row)), self.row >= 0
        if self.design is None or self.effects is None:
            out[inside] = self.matrix @ contrast[inside]
        else:
            rows = self.design[inside]
            out[inside] = rows @ (self.effects @ (rows.T @ contrast[inside]))
        return out

    def sum_powers(self, scores: csr_array) -> tuple[Floats, Floats]:
        """Of z = V·U, U each row of `scores`: Σ z² and Σ z⁴ by factor; only where it is `held`."""
        squares, fourths, inside = np.zeros(len(self.row)), np.zeros(len(self.row)), self.row >= 0
        rows = eye_array(int(inside.sum()), format="csr") if self.design is None else self.design[inside]
        matrix, parts = self.matrix if self.effects is None else self.effects, _split_rows(rows)
        scores = csr_array(scores[:, inside] @ rows)

        def sum_some(own: tuple[int, int]) -> tuple[Floats, Floats]:
            return _sum_powers(*parts, np.ascontiguousarray(np.asarray(scores[slice(*own)] @ matrix).T))

        ranges = [(first, first + _AT_ONCE) for first in range(0, scores.shape[0], _AT_ONCE)]
        for of_squares, of_fourths in map_threads(sum_some, ranges):
            squares[inside] += of_squares
            fourths[inside] += of_fourths
        return squares, fourths


def _split_rows(rows: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


@jit
def _sum_powers(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], data: Floats, columns: Floats
) -> tuple[Floats, Floats]:
    """Σ z² and Σ z⁴ over the columns of z = rows · columns, which is never held."""
    squares, fourths = np.zeros(indptr.shape[0] - 1), np.zeros(indptr.shape[0] - 1)
    z = np.empty(columns.shape[1])
    for row in range(squares.shape[0]):
        z[:] = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            share, own = data[at], columns[indices[at]]
            for column in range(z.shape[0]):
                z[column] += share * own[column]
        squares[row] = np.dot(z, z)
        z *= z
        fourths[row] = np.dot(z, z)
    return squares, fourths


def measure_covariance(
    design: EffectDesign | None, cells: Cells, w: Floats, propensity: Floats, component: Codes
) -> Covariance:
    """From the information `w` of every cell; `design`: of the formula that ties propensities, if one does."""
    if design is None:
        return find_covariance(cells, w, propensity, component)
    return find_tied_covariance(design, cells, w, propensity, component)


def find_tied_covariance(
    design: EffectDesign, cells: Cells, w: Floats, propensity: Floats, component: Codes
) -> Covariance:
    """As `find_covariance`, where a formula ties propensities."""
    n, reference = len(propensity), find_references(propensity, component)
    span, with_reference = tie(design, *cells[:2], w, reference)
    space = EffectSpace.of(design, span)
    tied = with_reference & (propensity > 0)
    free = tied & (reference != np.arange(n))
    row = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    rows = csr_array(space.x - space.x[reference])
    if len(space.kept) <= DENSE:
        effects = find_effect_covariance(*cells[:2], w, space, None)
        variance = quadratic(*_split_rows(rows), effects)
        return Covariance(np.where(tied, variance, np.nan), reference, row, np.empty((0, 0)), rows, effects)
    drawn = _draw_variances(cells, w, reference, space.x)
    return Covariance(np.where(tied, drawn, np.nan), reference, row, np.empty((0, 0)), rows)


def find_covariance(cells: Cells, w: Floats, propensity: Floats, component: Codes) -> Covariance:
    """From the information `w` of every cell."""
    n = len(propensity)
    parent = singletons(n)
    link_informed(*cells[:2], w, parent)
    group, reference = find_roots(parent), find_references(propensity, component)
    tied = (group == group[reference]) & (propensity > 0)
    free = tied & (reference != np.arange(n))
    row = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    out = np.where(tied, 0.0, np.nan)
    if free.sum() <= DENSE:
        matrix = invert_scaled(grounded_laplacian(*cells[:2], w, row, int(free.sum())))
        out[free] = np.diagonal(matrix)
        return Covariance(out, reference, row, matrix)
    drawn = _draw_variances(cells, w, reference, None)
    return Covariance(np.where(tied, drawn, np.nan), reference, row, np.empty((0, 0)))


def _draw_variances(cells: Cells, w: Floats, reference: NDArray[np.int64], x: csr_array | None) -> Floats:
    """By factor; `x`: the effects that log propensities are sums of, if a formula ties them."""
    n, rng = len(reference), np.random.default_rng(_SEED)
    scale = diagonal(*cells[:2], w, n)

    def multiply_tied(v: Floats) -> Floats:
        return multiply(*cells[:2], w, v) if x is None else np.asarray(x.T @ multiply(*cells[:2], w, x @ v))

    def draw(coins: NDArray[np.int8]) -> Floats:
        noise = project(*cells[:2], w, coins.astype(np.float64) * 2.0 - 1.0, n)  # signs are as good as normal draws
        if x is None:
            u = conjugate_gradients(multiply_tied, noise, scale, _SHARE, _STEPS).x
        else:
            u = x @ conjugate_gradients(multiply_tied, x.T @ noise, x.power(2).T @ scale, _SHARE, _STEPS).x
        return np.asarray((u - u[reference]) ** 2 / DRAWS)

    drawn = map_threads(draw, [rng.integers(2, size=len(w), dtype=np.int8) for _ in range(DRAWS)])
    return np.asarray(sum(drawn))

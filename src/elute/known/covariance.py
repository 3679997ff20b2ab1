"""How surely propensities are known if clicks are independent: the covariance of their logarithms.

As in `elute.estimate.solve.standard_errors`, with weights for items that stand for others. Up to `DENSE` factors the
covariance itself; beyond, draws that have it, fewer than a fit takes: a standard error from `DRAWS` of them is off by
about 1/√(2·`DRAWS`) of itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.threads import map_threads
from elute.cells.counts import Cells
from elute.estimate.solve.laplacian import conjugate_gradients, diagonal, grounded_laplacian, multiply
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.standard_errors import invert_scaled, link_informed, project
from elute.identify.information import find_references
from elute.kernels.unionfind import find_roots, singletons

DENSE = 600
"""As in `elute.known.sample`, where fewer cells are used beyond."""

DRAWS = 24

_SEED = 0
_SHARE, _STEPS = 1e-4, 2_000


class Covariance(NamedTuple):
    """Of log o to the component's reference, by factor: its variance, NaN where nothing ties the two; `row` of the
    factors in `matrix`, which is empty where there are too many of them."""

    variance: Floats
    reference: NDArray[np.int64]
    row: Codes
    matrix: Floats

    @property
    def relative_error(self) -> float:
        """Of a standard error, about; 0 where none was drawn."""
        return 0.0 if len(self.matrix) or not (self.row >= 0).any() else (2 * DRAWS) ** -0.5


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
    rng, scale = np.random.default_rng(_SEED), diagonal(*cells[:2], w, n)

    def draw(coins: NDArray[np.int8]) -> Floats:
        noise = project(*cells[:2], w, coins.astype(np.float64) * 2.0 - 1.0, n)  # signs are as good as normal draws
        u = conjugate_gradients(lambda v: multiply(*cells[:2], w, v), noise, scale, _SHARE, _STEPS).x
        return np.asarray((u - u[reference]) ** 2 / DRAWS)

    drawn = sum(map_threads(draw, [rng.integers(2, size=len(w), dtype=np.int8) for _ in range(DRAWS)]))
    return Covariance(np.where(tied, drawn, np.nan), reference, row, np.empty((0, 0)))

"""Does the effect of factors depend on something about items? A score test of p = r(x)·o(t)·exp(Σ_j b_jt·z_jx).

With z a group's indicator, b is how log propensities differ in that group. With z = 1/r it is, to first order, an
offset of click rates: r·o·(1 + b/r) = r·o + b·o, the affine model. Both are tested at b = 0 with relevance and
propensities profiled out: u = Σ_x z_x·(slope of the log-likelihood in log p), of covariance V, gives the statistic
uᵀV⁺u, whose null distribution is that of draws given item totals, or by clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from elute.auditing.assumptions.finding import exceedance, find_design_effect
from elute.auditing.assumptions.null import CellScores, Drawing, Null
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.jit import jit

LARGEST = 1_500
"""Unknowns (covariates × factors) up to which V is formed."""

_SINGULAR = 1e-9


class Interaction(NamedTuple):
    """The test: `estimate` holds b by (covariate, factor) after one Newton step, `covariance` that of its flattening,
    both with the gauge projected out."""

    p_value: float
    statistic: float
    freedom: int
    estimate: Floats
    covariance: Floats
    design_effect: float | None = None
    """With clusters: by how much more clicks scatter than independent ones; `covariance` takes it in."""


class Score:
    """u and V of a covariate at a fitted null."""

    def __init__(self, null: Null, z: Floats) -> None:
        self.null, self.z = null, z
        n, size = len(null.o), z.shape[1] * len(null.o)
        squares, cross = _compute_information(null.cells.offsets, null.cells.factor, null.w, z, n)
        squares, cross = squares.reshape(size, size), cross.reshape(size, n)
        self._through = cross @ null.inverse
        values, vectors = eigh(squares - self._through @ cross.T)
        inside = values > _SINGULAR * max(float(np.trace(squares)), 1e-300)
        self.freedom = int(inside.sum())
        self.root = vectors[:, inside] / np.sqrt(values[inside])

    def whiten(self, scores: CellScores) -> Floats:
        """V^(-1/2)·u, propensities moved by one step."""
        null, slope = self.null, scores.slope
        n, factor = len(null.o), null.cells.factor
        u = np.stack([np.bincount(factor, slope * column[null.item], n) for column in self.z.T])
        return np.asarray(self.root.T @ (u.ravel() - self._through @ np.bincount(factor, slope, n)), dtype=np.float64)


def assess_interaction(null: Null, z: Floats, drawing: Drawing, stage: str) -> Interaction | None:
    """The test of covariates `z`, by (item of the null, covariate); None where nothing is left to test."""
    score = Score(null, z)
    if score.freedom == 0:
        return None
    white, *others = map(score.whiten, null.score_draws(drawing, stage))
    observed, drawn = float(white @ white), np.array([float(v @ v) for v in others])
    effect = find_design_effect(null.rows, drawn, score.freedom)
    return Interaction(
        exceedance(observed, drawn),
        observed,
        score.freedom,
        (score.root @ white).reshape(z.shape[1], len(null.o)),
        (score.root @ score.root.T) * max(effect or 1.0, 1.0),
        effect,
    )


@jit
def _compute_information(
    offsets: NDArray[np.int64], factor: Codes, w: Floats, z: Floats, n_factors: int
) -> tuple[Floats, Floats]:
    """Items profiled out: of b with itself, by (j, t, k, s), and of b with log o, by (j, t, s)."""
    q = z.shape[1]
    squares = np.zeros((q, n_factors, q, n_factors))
    cross = np.zeros((q, n_factors, n_factors))
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = w[begin:end].sum()
        if total == 0.0:
            continue
        for a in range(begin, end):
            for b in range(begin, end):
                value = -w[a] * (w[b] / total)
                if a == b:
                    value = w[a] * ((total - w[a]) / total)
                for j in range(q):
                    if z[item, j] != 0.0:
                        cross[j, factor[a], factor[b]] += z[item, j] * value
                        for k in range(q):
                            squares[j, factor[a], k, factor[b]] += z[item, j] * z[item, k] * value
    return squares, cross

"""The profiled information matrix as an operator: L = diag(Wᵀ1) - Wᵀ diag(W1)⁻¹ W, never formed.

W holds a weight for every cell. Items own consecutive cells, so one pass computes L·v: with m_x the
weighted mean of v over item x, (L·v)_t = Σ_x w_xt·(v_t - m_x). That is 3 to 4 ms a million cells, for any
number of factors, on each core. The cells of an item are visited twice while they are in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]
Codes = NDArray[np.int32]

DIRECT = 100
"""Unknowns up to which a system with a prior is solved by Cholesky's method."""

_NOTHING = 1e-24
"""An energy, in squared standard errors, that is rounding: solving for it would run off along L's null space."""

_DELAY = 5
"""Conjugate-gradient steps over which a gain is measured before the rest is taken to be smaller."""


def multiply(offsets: Offsets, factor: Codes, weight: Floats, v: Floats) -> Floats:
    """L·v."""
    return np.asarray(sum(map_blocks(lambda _, own: _multiply(own, factor, weight, v), offsets)))


@jit
def _multiply(offsets: Offsets, factor: Codes, weight: Floats, v: Floats) -> Floats:
    out = np.zeros_like(v)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        mean = 0.0
        for cell in range(begin, end):
            total += weight[cell]
            mean += weight[cell] * v[factor[cell]]
        if total == 0.0:
            continue
        mean /= total
        for cell in range(begin, end):
            t = factor[cell]
            out[t] += weight[cell] * (v[t] - mean)
    return out


def multiply_columns(offsets: Offsets, factor: Codes, weight: Floats, v: Floats) -> Floats:
    """L·v of every column of v, whose rows are read once for all of them."""
    return np.asarray(sum(map_blocks(lambda _, own: _multiply_columns(own, factor, weight, v), offsets)))


@jit
def _multiply_columns(offsets: Offsets, factor: Codes, weight: Floats, v: Floats) -> Floats:
    out, mean = np.zeros_like(v), np.empty(v.shape[1])
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = weight[begin:end].sum()
        if total == 0.0:
            continue
        mean[:] = 0.0
        for cell in range(begin, end):
            share, row = weight[cell] / total, v[factor[cell]]
            for column in range(mean.shape[0]):
                mean[column] += share * row[column]
        for cell in range(begin, end):
            row, image = v[factor[cell]], out[factor[cell]]
            for column in range(mean.shape[0]):
                image[column] += weight[cell] * (row[column] - mean[column])
    return out


@jit
def diagonal(offsets: Offsets, factor: Codes, weight: Floats, n_factors: int) -> Floats:
    """The diagonal of L; each item's part as w·(the others' weights)/(all weights), which does not cancel."""
    out = np.zeros(n_factors)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = weight[begin:end].sum()
        if total == 0.0:
            continue
        for cell in range(begin, end):
            out[factor[cell]] += weight[cell] * ((total - weight[cell]) / total)
    return out


@jit
def grounded_laplacian(offsets: Offsets, factor: Codes, weight: Floats, row: Codes, size: int) -> Floats:
    """L as a dense matrix without the factors whose `row` is -1; its inverse holds resistances to those."""
    out = np.zeros((size, size))
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = weight[begin:end].sum()
        if total == 0.0:
            continue
        for a in range(begin, end):
            i = row[factor[a]]
            if i < 0:
                continue
            out[i, i] += weight[a]
            for b in range(begin, end):
                j = row[factor[b]]
                if j >= 0:
                    out[i, j] -= weight[a] * (weight[b] / total)
    return out


class LinearSolution(NamedTuple):
    """A solution of L·x = b, its energy bᵀx, and whether the steps sufficed."""

    x: Floats
    energy: float
    steps: int
    converged: bool


def conjugate_gradients(
    product: Callable[[Floats], Floats], b: Floats, scale: Floats, share: float, max_steps: int
) -> LinearSolution:
    """Solve L·x = b with the diagonal `scale` as preconditioner (1 where it is 0), to a given share of energy.

    The error is measured where it matters: b being a gradient, the energy bᵀL⁺b is the squared distance to
    the optimum in standard errors. Each step adds a known gain to it (Hestenes and Stiefel), and a residual
    norm would overlook the weakly tied directions. Stops when the last steps' gains are within `share`.
    """
    inverse = 1.0 / np.where(scale > 0, scale, 1.0)
    x = np.zeros_like(b)
    residual = b.copy()
    z = inverse * residual
    direction = z.copy()
    along = float(residual @ z)
    floor = max(along * np.finfo(np.float64).eps ** 2, _NOTHING)
    gains: list[float] = []
    energy = 0.0
    for step in range(1, max_steps + 1):
        image = product(direction)
        curvature = float(direction @ image)
        if along <= floor or curvature <= 0.0:
            return LinearSolution(x, energy, step - 1, True)
        length = along / curvature
        x += length * direction
        residual -= length * image
        gains.append(length * along)
        energy += gains[-1]
        if step > _DELAY and sum(gains[-_DELAY:]) <= share * energy:
            return LinearSolution(x, energy, step, True)
        z = inverse * residual
        following = float(residual @ z)
        direction = z + (following / along) * direction
        along = following
    return LinearSolution(x, energy, max_steps, False)


def conjugate_columns(
    product: Callable[[Floats], Floats], b: Floats, scale: Floats, share: float, max_steps: int
) -> Floats:
    """`conjugate_gradients` for the columns of `b` side by side: until the last steps' gains are within `share` for all
    of them."""
    inverse = (1.0 / np.where(scale > 0, scale, 1.0))[:, None]
    x, residual = np.zeros_like(b), b.copy()
    direction = inverse * residual
    along = (residual * direction).sum(axis=0)
    floor = np.maximum(along * np.finfo(np.float64).eps ** 2, _NOTHING)
    gains: list[Floats] = []
    energy = np.zeros_like(along)
    for step in range(1, max_steps + 1):
        image = product(direction)
        curvature = (direction * image).sum(axis=0)
        goes_on = (along > floor) & (curvature > 0.0)
        if not goes_on.any():
            break
        length = np.divide(along, curvature, out=np.zeros_like(along), where=goes_on)
        x += length * direction
        residual -= length * image
        gains.append(length * along)
        energy += gains[-1]
        if step > _DELAY and (np.sum(gains[-_DELAY:], axis=0) <= share * energy).all():
            break
        z = inverse * residual
        following = (residual * z).sum(axis=0)
        direction = z + np.divide(following, along, out=np.zeros_like(along), where=goes_on) * direction
        along = following
    return x


def solve(
    offsets: Offsets,
    factor: Codes,
    weight: Floats,
    prior: csr_array | None,
    b: Floats,
    scale: Floats,
    share: float,
    max_steps: int,
) -> LinearSolution:
    """Solve (L + Q)·x = b, with Q the precision of a prior, which must tie all unknowns to each other, or None.

    Strengths of a prior may differ by orders of magnitude, which conjugate gradients do not take well: up to
    `DIRECT` unknowns they are spared. `scale`: the diagonal."""
    if prior is not None and len(b) <= DIRECT:
        matrix = prior.toarray() + grounded_laplacian(
            offsets, factor, weight, np.arange(len(b), dtype=np.int32), len(b)
        )
        x = np.zeros_like(b)
        try:
            x[1:] = cho_solve(cho_factor(matrix[1:, 1:]), b[1:])
        except LinAlgError:
            pass
        else:
            return LinearSolution(x, float(b @ x), 1, True)

    def product(v: Floats) -> Floats:
        image = multiply(offsets, factor, weight, v)
        return image if prior is None else np.asarray(image + prior @ v)

    return conjugate_gradients(product, b, scale, share, max_steps)

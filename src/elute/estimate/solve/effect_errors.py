"""Standard errors where a formula ties propensities: the covariance of effects, and what follows for factors and items.

As in `elute.estimate.solve.standard_errors`, with V = X(XᵀLX)⁻¹Xᵀ in place of L⁻¹. A column of X is a sum over an
item's cells, so XᵀLX is added up item by item. Up to `DENSE` effects it is inverted; beyond, V is sampled as there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.laplacian import conjugate_columns, diagonal, multiply_columns
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.standard_errors import DRAWS, invert_scaled, item_means, link_informed, project
from elute.identify.effects.classes import span_forest
from elute.identify.effects.design import EffectDesign
from elute.identify.effects.span import Span
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, singletons

DENSE = 1_000
_SEED, _SHARE, _CG_STEPS = 0, 1e-6, 10_000
_AT_ONCE = 20
"""Draws that are solved for side by side."""
_ROWS = 10_000
"""Combinations whose errors are computed at a time."""


class EffectErrors(NamedTuple):
    """What is determined, the effects that this makes, and a root R of their covariance RRᵀ, one row an effect: exact,
    or of draws."""

    span: Span
    space: EffectSpace
    root: Floats

    def find_errors(self, rows: csr_array) -> Floats:
        """Of combinations of the effects, one a row."""
        return np.concatenate(
            [
                np.sqrt(((rows[at : at + _ROWS] @ self.root) ** 2).sum(axis=1))
                for at in range(0, max(rows.shape[0], 1), _ROWS)
            ]
        )


def tie(
    design: EffectDesign, offsets: NDArray[np.int64], factor: Codes, w: Floats, reference: NDArray[np.int64]
) -> tuple[Span, NDArray[np.bool_]]:
    """What cells with information determine, and by factor whether its reference is in its class."""
    parent = singletons(len(reference))
    link_informed(offsets, factor, w, parent)
    span = span_forest(design, find_roots(parent))
    keys = span.key_factors(design)
    return span, np.asarray((keys == keys[reference]).all(axis=1))


def inform_effects(offsets: NDArray[np.int64], factor: Codes, w: Floats, x: csr_array) -> Floats:
    """XᵀLX, over the first rows of X: factors."""
    n = x.shape[0]
    mass = np.bincount(factor, w, minlength=n)
    out, parts = np.asarray((x.T @ (diags_array(mass) @ x)).toarray()), _parts(x)
    for less in map_blocks(lambda _, own: _square_means(own, factor, w, *parts, x.shape[1]), offsets):
        out -= less
    return out


def find_effect_covariance(
    offsets: NDArray[np.int64], factor: Codes, w: Floats, space: EffectSpace, root: csr_array | None
) -> Floats:
    """Of the effects that are kept; `root`: of a prior's precision, over factors and latent effects."""
    matrix = inform_effects(offsets, factor, w, space.x)
    if root is not None:
        of_prior = root @ space.x
        matrix += (of_prior.T @ of_prior).toarray()
    return invert_scaled(matrix)


def take_root(covariance: Floats) -> Floats:
    """R with RRᵀ the covariance; NaN where that is."""
    if not np.isfinite(covariance).all():
        return np.full_like(covariance, np.nan)
    value, vector = np.linalg.eigh(covariance)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0)))


def exact_variances(
    offsets: NDArray[np.int64],
    factor: Codes,
    own: Floats,
    reference: NDArray[np.int64],
    space: EffectSpace,
    covariance: Floats,
) -> tuple[Floats, Floats]:
    """Variances by factor and item, from the effects'."""
    n = len(reference)
    rows = csr_array(space.x[:n] - space.x[reference])
    of_factors = quadratic(*_parts(rows), covariance)
    of_items = _quadratic_means(offsets, factor, own, *_parts(rows), covariance)
    return of_factors, of_items


def _parts(rows: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


def sample_variances(
    offsets: NDArray[np.int64],
    factor: Codes,
    w: Floats,
    own: Floats,
    reference: NDArray[np.int64],
    space: EffectSpace,
    root: csr_array | None,
) -> tuple[Floats, Floats, Floats]:
    """Variances by factor and item, from draws, and a root of the effects' covariance."""
    rng, x, n = np.random.default_rng(_SEED), space.x, len(reference)
    of_prior, rows = csr_array((0, x.shape[1])) if root is None else csr_array(root @ x), csr_array(x[:n])
    scale = (rows.power(2)).T @ diagonal(offsets, factor, w, n) + (of_prior.power(2)).sum(axis=0)
    of_factors, of_items, drawn = np.zeros(n), np.zeros(len(offsets) - 1), np.empty((x.shape[1], DRAWS))

    def product(v: Floats) -> Floats:
        return np.asarray(rows.T @ multiply_columns(offsets, factor, w, rows @ v) + of_prior.T @ (of_prior @ v))

    def draw() -> Floats:
        noise = rows.T @ project(offsets, factor, w, rng.standard_normal(len(w)), n)
        return np.asarray(noise + of_prior.T @ rng.standard_normal(of_prior.shape[0]))

    for first in range(0, DRAWS, _AT_ONCE):
        noise = np.stack([draw() for _ in range(_AT_ONCE)], axis=1)
        found = conjugate_columns(product, noise, scale, _SHARE, _CG_STEPS)
        drawn[:, first : first + _AT_ONCE] = found
        moved = rows @ found
        for u in (moved - moved[reference]).T:
            of_factors += u**2 / DRAWS
            of_items += item_means(offsets, factor, own, u) ** 2 / DRAWS
    return of_factors, of_items, drawn / np.sqrt(DRAWS)


@jit
def quadratic(indptr: NDArray[np.int64], indices: NDArray[np.int64], data: Floats, covariance: Floats) -> Floats:
    """mᵀVm of every row."""
    out = np.zeros(indptr.shape[0] - 1)
    for row in range(out.shape[0]):
        for a in range(indptr[row], indptr[row + 1]):
            part = 0.0
            for b in range(indptr[row], indptr[row + 1]):
                part += covariance[indices[a], indices[b]] * data[b]
            out[row] += data[a] * part
    return out


@jit
def _add_rows(
    factor: Codes,
    w: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: Floats,
    sums: Floats,
    met: NDArray[np.bool_],
    seen: NDArray[np.int64],
) -> tuple[float, int]:
    """Add w·X_t of an item's cells to `sums`; the sum of w, and the number of columns met, which `seen` lists."""
    total = 0.0
    n = 0
    for cell in range(factor.shape[0]):
        total += w[cell]
        for at in range(indptr[factor[cell]], indptr[factor[cell] + 1]):
            column = indices[at]
            if not met[column]:
                met[column] = True
                seen[n] = column
                n += 1
            sums[column] += w[cell] * data[at]
    return total, n


@jit
def _square_means(
    offsets: NDArray[np.int64],
    factor: Codes,
    w: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: Floats,
    size: int,
) -> Floats:
    """Σ v·vᵀ/S over items, with v = Σ w·X_t and S = Σ w of each."""
    out = np.zeros((size, size))
    sums, met, seen = np.zeros(size), np.zeros(size, np.bool_), np.empty(size, np.int64)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total, n = _add_rows(factor[begin:end], w[begin:end], indptr, indices, data, sums, met, seen)
        for a in range(n):
            share = sums[seen[a]] / total if total > 0.0 else 0.0
            for b in range(n):
                out[seen[a], seen[b]] += share * sums[seen[b]]
        for a in range(n):
            sums[seen[a]] = 0.0
            met[seen[a]] = False
    return out


@jit
def _quadratic_means(
    offsets: NDArray[np.int64],
    factor: Codes,
    own: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: Floats,
    covariance: Floats,
) -> Floats:
    """mᵀVm of every item, with m the mean of its factors' rows weighted by `own`; 0 for one without weights."""
    size = covariance.shape[0]
    sums, met, seen = np.zeros(size), np.zeros(size, np.bool_), np.empty(size, np.int64)
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        total, n = _add_rows(factor[begin:end], own[begin:end], indptr, indices, data, sums, met, seen)
        for a in range(n):
            part = 0.0
            for b in range(n):
                part += covariance[seen[a], seen[b]] * sums[seen[b]]
            out[item] += sums[seen[a]] * part
        if total > 0.0:
            out[item] /= total**2
        for a in range(n):
            sums[seen[a]] = 0.0
            met[seen[a]] = False
    return out

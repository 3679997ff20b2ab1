"""How surely the propensities of a fit by partition are known."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array

from elute.cells.partitions import Partitions
from elute.estimate.partitioned.items import FactorInformation, FittedFactors, InformationTask, NoiseTask
from elute.estimate.partitioned.work import Flags
from elute.estimate.solve.effect_errors import EffectErrors, take_root
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.laplacian import conjugate_gradients
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.standard_errors import DRAWS, invert_scaled
from elute.identify.effects.classes import number_classes, span_forest
from elute.identify.effects.design import EffectDesign
from elute.identify.information import find_references

_LARGEST = 2_000_000
"""Numbers in an answer with draws."""

_CG_STEPS = 5_000


def estimate_precision(
    partitions: Partitions, fitted: FittedFactors, precision: FactorInformation, design: EffectDesign | None
) -> tuple[Flags, Codes, Floats, bool, EffectErrors | None]:
    """Which factors are tied to their reference, the covariance of log o (`solve.standard_errors`), and of effects."""
    propensity, n = fitted.propensity, len(fitted.o)
    reference = find_references(propensity, fitted.component)
    group, effects = precision.root, None
    if design is not None:
        span = span_forest(design, precision.root)
        group = number_classes(span.key_factors(design))
        effects = EffectErrors(span, EffectSpace.of(design, span), np.empty((0, 0)))
    tied = (group == group[reference]) & (propensity > 0)
    free = tied & (reference != np.arange(n))
    row = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    if len(precision.matrix) and effects is not None:
        x = effects.space.x
        rows = csr_array(x[free] - x[reference[free]])
        inverse = invert_scaled(np.asarray(x.T @ (precision.matrix @ x)))
        return tied, row, np.asarray(rows @ (rows @ inverse).T), False, effects._replace(root=take_root(inverse))
    if len(precision.matrix):
        return tied, row, invert_scaled(np.ascontiguousarray(precision.matrix[np.ix_(free, free)])), False, None
    at_once = max(1, min(DRAWS, _LARGEST // n))
    groups = [
        _draw_vectors(partitions, fitted, precision, min(at_once, DRAWS - first), first, effects)
        for first in range(0, DRAWS, at_once)
    ]
    drawn = np.concatenate(groups, axis=1)
    if effects is not None:
        effects, drawn = effects._replace(root=drawn / np.sqrt(DRAWS)), np.asarray(effects.space.x @ drawn)
    return tied, row, drawn - drawn[reference], True, effects


def _draw_vectors(
    partitions: Partitions,
    fitted: FittedFactors,
    precision: FactorInformation,
    draws: int,
    seed: int,
    effects: EffectErrors | None,
) -> Floats:
    """Vectors whose covariance is that of log o, or of effects where a formula ties them, by column."""
    noise, diagonal = partitions.map_reduce(NoiseTask(fitted, draws, seed), np.add), precision.diagonal
    x = eye_array(len(diagonal), format="csr") if effects is None else effects.space.x

    def product(v: Floats) -> Floats:
        moved = x @ v.reshape(x.shape[1], draws)
        return np.asarray(x.T @ partitions.map_reduce(InformationTask(fitted, moved), np.add)).ravel()

    scale = np.repeat(x.power(2).T @ diagonal, draws)
    found = conjugate_gradients(product, np.asarray(x.T @ noise).ravel(), scale, 1e-6, _CG_STEPS).x
    return np.asarray(found.reshape(x.shape[1], draws))

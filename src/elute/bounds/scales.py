"""Scales: the parts of a log within which clicks determine ratios of propensities, each with one open factor.

A part is a component of the identifiability graph; where clicks do not tie all of a component, it is each strongly
connected part of its clicks (`elute.estimate.solve.boundary`), so a log that is linked and not estimable has several.
Factors without a click, and items, go with a part of their component. Within its part a factor has
log o(t) = log o(reference) + ratio ± width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.bounds.limits import SHARE, find_quantile, widen_errors
from elute.cells.counts import Amounts
from elute.estimate.solve import boundary
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_item
from elute.identify.information import find_references
from elute.kernels.jit import jit
from elute.known.covariance import DENSE, DRAWS
from elute.known.dependence import FEWEST
from elute.known.precision import Precision, measure

Ints = NDArray[np.int64]


class CellSums(NamedTuple):
    """By item: clicks and impressions over all of its cells."""

    clicks: Floats
    impressions: Floats


@dataclass(frozen=True, eq=False)
class Scales:
    """`part`: of every factor, numbered from 0, parts of the largest component first. `reference`: of every factor, the
    one its part is measured by. `ratio`, `width`: of log o to the reference, in simultaneous confidence; the width is
    infinite where clicks say nothing. `item_part`: of every item.
    `component`: of every part. `quantile`: standard errors that widths are made of, at the confidence of all."""

    part: Ints
    reference: Ints
    ratio: Floats
    width: Floats
    item_part: Ints
    component: Ints
    items: CellSums
    quantile: float

    @property
    def tied(self) -> NDArray[np.bool_]:
        return np.isfinite(self.width)

    @property
    def item_group(self) -> Ints:
        """By item: what it can be compared within, as a check counts that: the component, or the part where there is
        but one component."""
        return self.item_part if self.component.max() == 0 else self.component[self.item_part]

    @property
    def references(self) -> Ints:
        """By part."""
        return self.reference[np.unique(self.part, return_index=True)[1]]


def find_scales(precision: Precision, given: int = 0) -> Scales:
    """From what was measured of a log. `given`: further ratios that share the chance of error."""
    sample, problem = precision.sample, precision.sample.problem
    sums = CellSums(*(total_by_item(problem.cells.offsets, amounts) for amounts in problem.cells[2:][::-1]))
    part, component = _number_parts(precision)
    item_part = _assign_items(*problem.cells, part, sample.part)
    found = precision if len(component) == int(problem.component.max()) + 1 else _measure_parts(precision, part)
    ratio, errors = _read_errors(precision, found)
    if sample.share < 1:  # they are those of all clicks, the propensities of a sample's
        errors = errors * np.sqrt(sample.clicked.sum() / max(float(sums.clicks.sum()), 1.0))
    reference = find_references(np.where(np.isfinite(errors), np.exp(ratio), 0.0), part)
    ratio = ratio - ratio[reference]
    own = reference == np.arange(len(part))
    free = np.isfinite(errors) & ~own
    clusters = None if found.dependence is None else found.dependence.clusters
    quantile = find_quantile(
        SHARE / (2 * max(int(free.sum()) + given, 1)),
        None if clusters is None or clusters < FEWEST else clusters,
        DRAWS if free.sum() > DENSE else None,
    )
    width = np.where(own, 0.0, widen_errors(np.where(own, 0.0, errors), quantile))
    ratio = np.where(np.isfinite(width), ratio, 0.0)
    return Scales(part, reference, ratio, width, item_part, component, sums, quantile)


def _number_parts(precision: Precision) -> tuple[Ints, Ints]:
    """The part of every factor, and the component of every part. A factor without a click goes with the main part."""
    sample, component = precision.sample, precision.sample.problem.component
    strong = sample.part.astype(np.int64)
    if precision.unclicked.all():
        return component.astype(np.int64), np.arange(int(component.max()) + 1)
    main = boundary.find_main_parts(sample.clicked, component, sample.part)
    clicks = np.bincount(np.maximum(strong, 0), np.where(strong >= 0, sample.clicked, 0.0), len(strong))
    label = np.where(np.isin(strong, [boundary.NOWHERE, *main]), -1, strong)  # -1: the main one, or nowhere
    keys, first, code = np.unique(np.stack((component, label), axis=1), axis=0, return_index=True, return_inverse=True)
    weight = np.where(label[first] < 0, np.inf, clicks[np.maximum(label[first], 0)])
    order = np.lexsort((first, -weight, keys[:, 0]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[code.ravel()], keys[order, 0].astype(np.int64)


def _measure_parts(precision: Precision, part: Ints) -> Precision:
    """Every part as a component of its own, without the cells that lead from one to another."""
    sample, whole = precision.sample, precision.sample.problem
    item = _assign_items(*whole.cells, part, sample.part).astype(np.int32)
    cells = boundary.restrict(whole.cells, part.astype(np.int32), item)
    problem = Problem(cells, whole.merged, part.astype(np.int32), whole.factors)
    return measure(replace(sample, problem=problem, members=None, query=None))


def _read_errors(precision: Precision, found: Precision) -> tuple[Floats, Floats]:
    """log o and its standard error, NaN where clicks tell neither; of parts that were measured anew with the design
    effect of the others."""
    errors = found.log_se if found is precision else found.plain_se * np.sqrt(precision.design_effect)
    told = (found.propensity > 0) & np.isfinite(errors) & ~found.unclicked
    ratio = np.log(np.where(told, found.propensity, 1.0))
    return np.where(told, ratio, 0.0), np.where(told, errors, np.nan)


@jit
def _assign_items(
    offsets: Ints, factor: Codes, impressions: Amounts, clicks: Amounts, part: Ints, strong: Codes
) -> Ints:
    """By item: the part it was clicked in; without a click, that of the factor it was shown under most, of
    clicked ones if there are."""
    out = np.empty(offsets.shape[0] - 1, np.int64)
    for item in range(out.shape[0]):
        best, most, told = -1, 0.0, False
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            if clicks[cell] > 0:
                best = part[t]
                break
            if best < 0 or (strong[t] >= 0, float(impressions[cell])) > (told, most):
                best, most, told = part[t], float(impressions[cell]), strong[t] >= 0
        out[item] = best
    return out

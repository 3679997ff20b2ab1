"""A replicate of a bootstrap: the model fitted to a draw of the log's clicks."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.strength import drop_unshown
from elute.estimate.solve.problem import Codes, Floats, Problem, total_by_factor
from elute.identify.components import number_components
from elute.identify.effects.classes import join_classes
from elute.kernels.forest import connect_cells
from elute.kernels.jit import jit

_UNKNOWN, _ZERO, _FOUND = 0, 1, 2


class Replicate(NamedTuple):
    """What a draw gives: log propensities relative to their reference (NaN where they are not known), which items can
    be refitted, and their log relevance."""

    log_o: Floats
    items: NDArray[np.int64]
    log_r: Floats
    disconnected: bool
    failed: bool


def refit(
    model: PBM,
    problem: Problem,
    impressions: NDArray[np.uint64],
    clicks: NDArray[np.uint64],
    reference: NDArray[np.int64],
    renewed: bool = False,
) -> Replicate:
    """`model`, fitted to `problem`, to these amounts instead. `renewed`: so are the items' own clicks."""
    own = model.copy_for_refit()
    drawn, kept = _pose_resample(problem, impressions, clicks)
    found = own.fit_factors(drawn)
    tied = (drawn.component == drawn.component[reference]) | (own.prior is not None)
    whole = tied & ~found.apart & (found.o[reference] > 0) & ~found.apart[reference]
    state = np.where(whole, np.where(found.o > 0, _FOUND, _ZERO), _UNKNOWN)
    o = np.where(state == _FOUND, found.o / np.where(whole, found.o[reference], 1.0), 0.0)
    log_o = np.full(len(o), np.nan)
    log_o[state == _FOUND] = np.log(o[state == _FOUND])
    items, refitted = (np.flatnonzero(kept), drawn) if renewed else (np.arange(problem.n_items), problem)
    r = own.estimate_items(refitted, o)
    known = _find_refittable(refitted.cells.offsets, refitted.cells.factor, refitted.cells.clicks, state) & (r > 0)
    apart = int(drawn.component.max()) > int(problem.component.max())
    return Replicate(log_o, items[known], np.log(r[known]), apart, bool(found.reason))


def _pose_resample(
    problem: Problem, impressions: NDArray[np.uint64], clicks: NDArray[np.uint64]
) -> tuple[Problem, NDArray[np.bool_]]:
    """The problem that new amounts pose, and which items are in it; factors without any are, each a component."""
    cells = drop_unshown(Cells(problem.cells.offsets, problem.cells.factor, impressions, clicks))
    kept = np.diff(cells.offsets) > 0
    cells = cells._replace(offsets=np.unique(cells.offsets))
    root = connect_cells(cells.offsets, cells.factor, problem.n_factors)
    total = total_by_factor(cells.factor, cells.impressions, problem.n_factors).astype(np.int64)
    if problem.design is not None:
        root = join_classes(root, problem.factors)
    component = number_components(root, total).of_factor
    return replace(problem, cells=cells, component=component), kept


@jit
def _find_refittable(
    offsets: NDArray[np.int64], factor: Codes, clicks: Amounts, state: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether a replicate's propensities suffice to refit an item: all known, and none 0 where it was clicked."""
    out = np.zeros(offsets.shape[0] - 1, np.bool_)
    for item in range(out.shape[0]):
        known = True
        found = False
        for cell in range(offsets[item], offsets[item + 1]):
            here = state[factor[cell]]
            known = known and here != _UNKNOWN and (here == _FOUND or clicks[cell] == 0)
            found = found or here == _FOUND
        out[item] = known and found
    return out

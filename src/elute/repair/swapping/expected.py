"""What a planner expects before anything is shown: relevance of items, propensities of factors, and what clicks tie.

Parts that no chain of clicks ties have no common scale, so a guess is needed: parts are joined by merging the factors
that are most alike (as the paper does, section 4.1), the position-based model is fitted, parts are put where their
positions suggest (`scale`), and items of few clicks are drawn towards the prior of `elute.estimate.priors.gamma`, which
`elute fit` uses.

**Items are not chosen by their own clicks** but by what is expected of them from where and how often they were shown
(`typical`). An item that stands out by its clicks was lucky at the place it is known from. Shown elsewhere it is itself
again, and the fit that follows takes its luck for the place's: the ratio of propensities comes out too small
(`elute reproduce plans-budget`, where that bias doubles; `plans-looks`, where it spoils the error of a stopping rule).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts
from elute.cells.factors import is_position
from elute.checking.check import Check
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.gamma import expect_items, fit_population, know_items
from elute.estimate.solve.problem import Problem, total_by_factor
from elute.identify.effects.classes import join_pairs, root_classes
from elute.identify.effects.constraints import constrain
from elute.identify.effects.design import find_design
from elute.identify.effects.independent import keep_independent
from elute.identify.information import information
from elute.kernels.merge import merge_cells, merge_factors
from elute.progress import Progress, silent
from elute.repair.allowed import FittedCells, is_positive
from elute.repair.features import bias_features
from elute.repair.merge import find_minimum_merges
from elute.repair.plan import MergePlan
from elute.repair.swapping.movable import number_kinds
from elute.repair.swapping.parts import find_parts
from elute.repair.swapping.scale import align_parts, find_ways

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 0.95
"""A click probability that a planner counts on, at most."""


class Outlook(NamedTuple):
    """By item `relevance`, and `typical`, which does not look at its own clicks; by factor `propensity` and `part`, its
    number among the parts that clicks tie together. By item `known`, the information that its cells carry about it if
    it is as is typical, and the part `home` in which they do."""

    relevance: Floats
    typical: Floats
    propensity: Floats
    part: Ints
    known: Floats
    home: Ints

    @property
    def parts(self) -> int:
        return int(self.part.max(initial=0)) + 1

    @property
    def knows_nothing(self) -> bool:
        """Of propensities: all are taken to be equal."""
        return len(np.unique(self.propensity)) == 1 < len(self.propensity)

    def probability(self, item: Ints, factor: Ints) -> Floats:
        """Of a click."""
        return np.minimum(self.relevance[item] * self.propensity[factor], MOST)

    def odds(self, item: Ints, factor: Ints) -> Floats:
        """What one impression tells, p/(1 - p), of an item as is typical."""
        p = np.minimum(self.typical[item] * self.propensity[factor], MOST)
        return np.asarray(p / (1 - p))


def expect(
    check: Check,
    relevance: Floats | None = None,
    propensity: Floats | None = None,
    first: MergePlan | None = None,
    alike: list[str] | None = None,
    progress: Progress = silent,
) -> Outlook:
    """From the log, unless both are given. `first`: the merge plan to fit under; without one, factors are alike whose
    columns `alike` are."""
    counts = check.counts
    part = find_parts(counts, check.found.of_factor)
    if relevance is None or propensity is None:
        if check.log.roles.click is None or not counts.clicks.any():
            raise EluteError("a swap plan needs clicks, or both `relevance=` and `propensity=`")
        pairs = _find_pairs(counts, part, first, alike)
        relevance, typical, propensity = _fit(counts, pairs, None if first is not None else part, progress)
    else:
        relevance = typical = np.where(is_positive(relevance), relevance, 0.0)
    known, home = _locate(counts, typical, np.where(is_positive(propensity), propensity, 0.0), part)
    return Outlook(relevance, typical, propensity, part, known, home)


def _find_pairs(counts: Counts, part: Ints, first: MergePlan | None, alike: list[str] | None) -> Ints:
    """Factors to merge until all parts are one."""
    factors = counts.factors
    given = np.empty((0, 2), np.int64) if first is None else first.pairs_of(factors)
    joined = join_pairs(part, given, factors)[part]
    if not joined.any():
        return given
    more = find_minimum_merges(bias_features(factors, alike or None), joined)[0]
    return np.concatenate((given, more[keep_independent(more, root_classes(joined), factors)]))


def _fit(counts: Counts, pairs: Ints, part: Ints | None, progress: Progress) -> tuple[Floats, Floats, Floats]:
    """Posterior and prior means of relevance, and propensities, with `part` at scales that positions suggest; a factor
    without a click counts as if it had half of one."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    problem = _pose(counts, cells, pairs)
    found = PBM(relevance_prior="beta", progress=progress).fit_factors(problem).o
    o = np.where(np.isfinite(found), found, 0.0)[problem.merged]
    position = next((column for column in counts.factors.column_names if is_position(counts.factors, column)), None)
    if part is not None and part.max(initial=0) > 0 and position is not None:
        clicks = total_by_factor(counts.factor, counts.clicks, counts.n_factors).astype(np.float64)
        curve = number_kinds(counts.factors, [column for column in counts.factors.column_names if column != position])
        ways = find_ways(part, counts.factors)
        o = align_parts(o, clicks, ways, curve, counts.factors[position].to_numpy().astype(np.float64))
    o = o / o.max()
    none, one = np.zeros(len(o)), np.zeros(len(o), np.int32)
    population = fit_population(cells, o, none, one)
    know = know_items(cells, o, none, population)
    r = np.nan_to_num(know.shape / know.rate)
    never = o == 0
    if never.any():
        seen = np.bincount(cells.factor, cells.impressions * r.repeat(np.diff(cells.offsets)), len(o))
        o[never] = np.minimum(0.5 / np.maximum(seen[never], 0.5), o[~never].min())
    return r, expect_items(cells, o, population), o


def _pose(counts: Counts, cells: Cells, pairs: Ints) -> Problem:
    """The log as one component, once the factors of these pairs are alike."""
    n, design = counts.n_factors, find_design(counts.factors)
    if design is not None:
        whole = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
        return Problem(cells, *whole, counts.factors, constrain(design.roughen(), pairs))
    merged = merge_factors(n, pairs)
    few = Cells(*merge_cells(*cells, merged))
    return Problem(few, merged, np.zeros(int(merged.max()) + 1, np.int32), counts.factors)


def _locate(counts: Counts, relevance: Floats, propensity: Floats, part: Ints) -> tuple[Floats, Ints]:
    """What every item's cells carry within the part where they carry most, and that part."""
    every = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    w = information(counts.impressions, relevance[every] * propensity[counts.factor])
    order = np.lexsort((part[counts.factor], every))
    item, where = every[order], part[counts.factor][order]
    first = np.flatnonzero(np.r_[True, (np.diff(item) != 0) | (np.diff(where) != 0)])
    carried = np.add.reduceat(w[order], first)
    best = np.lexsort((carried, item[first]))
    last = np.r_[np.flatnonzero(np.diff(item[first][best])), len(best) - 1]
    return carried[best][last], where[first][best][last]


def to_fitted_cells(counts: Counts, expected: Outlook) -> FittedCells:
    """The log's cells with what is typical of them; parts take the place of components, and cells of an item outside
    the part where it was clicked, which link nothing, are left out."""
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    kept = expected.part[counts.factor] == expected.home[item]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(item[kept], minlength=counts.n_items))))
    return FittedCells(
        offsets, counts.factor[kept], counts.impressions[kept], expected.typical, expected.propensity, expected.part
    )

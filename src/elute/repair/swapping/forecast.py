"""What propensities would be known to if more were shown: from the information of all cells, old and new.

An impression of item x under factor t adds p/(1 - p) to its cell. The standard errors are those of the covariance that
`elute check` reports, times its design effects, at the probabilities that are typical: odds of an item that was lucky
would promise too much. Where a formula ties factors, the information is that about its effects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts
from elute.checking.check import Check
from elute.estimate.solve.standard_errors import link_informed
from elute.identify.effects.classes import join_classes
from elute.identify.effects.design import find_design
from elute.kernels.unionfind import find_roots, singletons
from elute.known.covariance import measure_covariance
from elute.repair.swapping.expected import Outlook

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ShownAnew(NamedTuple):
    """Impressions of items under factors, beyond the log's."""

    item: Ints
    factor: Ints
    impressions: Floats


class Errors(NamedTuple):
    """Standard errors of log propensities by factor, relative to the reference of the part that it is in (`part`); NaN
    where nothing is known. `parts`: how many."""

    log_se: Floats
    part: Ints
    reference: Ints

    @property
    def parts(self) -> int:
        return len(np.unique(self.part))

    @property
    def measured(self) -> Floats:
        """Of factors that others are not measured by."""
        return np.asarray(self.log_se[self.reference != np.arange(len(self.reference))])

    @property
    def largest(self) -> float | None:
        """The largest; None where one has none, or where there is nothing to compare."""
        return _finite(np.max(np.nan_to_num(self.measured, nan=np.inf), initial=-np.inf))

    @property
    def median(self) -> float | None:
        errors = np.nan_to_num(self.measured, nan=np.inf)
        return _finite(float(np.median(errors))) if len(errors) else None


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


class Forecast:
    """Cells of a log together with what is to be shown, which may be scaled."""

    def __init__(self, check: Check, expected: Outlook, shown: ShownAnew) -> None:
        counts = check.counts
        self._expected, self._effect = expected, find_effects(check)
        self._factors, self._design = counts.factors, find_design(counts.factors)
        self._offsets, self._factor, self._old, self._new = _unite(counts, shown)
        every = np.repeat(np.arange(counts.n_items), np.diff(self._offsets))
        self._odds = expected.odds(every, self._factor.astype(np.int64))
        home = expected.part[self._factor] == expected.home[every]
        self._old = np.where(home | (self._new > 0), self._old, 0.0)

    def measure(self, scale: float = 1.0) -> Errors:
        """The errors after `scale` times what is to be shown."""
        n = len(self._expected.propensity)
        shown = self._old + scale * self._new
        w = shown * self._odds
        none = np.empty(0, np.uint32)
        cells = Cells(self._offsets, self._factor, none, none)
        parent = singletons(n)
        link_informed(self._offsets, self._factor, w, parent)
        label = join_classes(find_roots(parent), self._factors)
        part = np.unique(label, return_inverse=True)[1].reshape(-1)
        found = measure_covariance(self._design, cells, w, self._expected.propensity, part.astype(np.int32))
        return Errors(np.sqrt(found.variance * self._effect), part, found.reference)


def find_effects(check: Check) -> Floats:
    """Design effects of the log's factors: the typical one for all, as that of a single factor is a poor estimate; 1
    where clusters were not looked at."""
    found = check.precision
    return np.full(check.counts.n_factors, 1.0 if found is None else found.design_effect)


def _unite(counts: Counts, shown: ShownAnew) -> tuple[Ints, NDArray[np.int32], Floats, Floats]:
    """Cells by item, and impressions of each: those of the log, and those to be shown."""
    item = np.concatenate((np.repeat(np.arange(counts.n_items), np.diff(counts.offsets)), shown.item))
    factor = np.concatenate((counts.factor.astype(np.int64), shown.factor))
    order = np.lexsort((factor, item))
    item, factor = item[order], factor[order]
    first = np.flatnonzero(np.r_[True, (np.diff(item) != 0) | (np.diff(factor) != 0)])
    old = np.concatenate((counts.impressions.astype(np.float64), np.zeros(len(shown.item))))
    new = np.concatenate((np.zeros(counts.n_cells), shown.impressions))
    sums = [np.add.reduceat(part[order], first) for part in (old, new)]
    offsets = np.searchsorted(item[first], np.arange(counts.n_items + 1))
    return offsets, factor[first].astype(np.int32), sums[0], sums[1]

"""Ratios of propensities in one group against another: which differ, by how much, and how sure that is."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtr

from elute.auditing.assumptions.null import Null, fit_null, make_counts, take_cells

LISTED = 20


class RatioDifference(NamedTuple):
    """log(o_a/o_b) in group `first` less that in group `second`; factors and groups by code."""

    a: int
    b: int
    first: int
    second: int
    difference: float
    se: float
    p_value: float
    """Of no difference, corrected for all that were looked at (Bonferroni: most are not kept)."""


def find_differences(base: Null, label: NDArray[np.int64], dispersion: float = 1.0) -> list[RatioDifference]:
    """Between any two groups, for any two factors that both determine; `label`: the group of every item of the null;
    `dispersion`: the variance of clicks over that of independent ones. Furthest from 0 in standard errors first, at
    most `LISTED`."""
    fits = {int(code): _fit_alone(base, label == code) for code in np.unique(label)}
    found: list[RatioDifference] = []
    looked = 0
    for first, second in combinations(fits, 2):
        one, two = fits[first], fits[second]
        shared = np.intersect1d(one.cells.factor, two.cells.factor)
        if len(shared) < 2:
            continue
        off = np.log(one.o[shared]) - np.log(two.o[shared])
        covariance = dispersion * (one.inverse + two.inverse)[np.ix_(shared, shared)]
        own = np.diagonal(covariance)
        a, b = np.triu_indices(len(shared), 1)
        joined = [fit.component[shared[a]] == fit.component[shared[b]] for fit in (one, two)]
        a, b = a[joined[0] & joined[1]], b[joined[0] & joined[1]]
        se = np.sqrt(np.maximum(own[a] + own[b] - 2 * covariance[a, b], 0.0))
        z = np.divide(np.abs(off[a] - off[b]), se, out=np.zeros(len(a)), where=se > 0)
        looked += int((se > 0).sum())
        for i in np.argsort(-z, kind="stable")[:LISTED]:
            if se[i] > 0:
                s, t, gap = int(shared[a[i]]), int(shared[b[i]]), float(off[a[i]] - off[b[i]])
                found.append(RatioDifference(s, t, first, second, gap, float(se[i]), float(2 * ndtr(-z[i]))))
    found.sort(key=lambda row: -abs(row.difference) / row.se)
    return [row._replace(p_value=min(row.p_value * looked, 1.0)) for row in found[:LISTED]]


def _fit_alone(base: Null, items: NDArray[np.bool_]) -> Null:
    """r·o fitted to some of the items."""
    cells = take_cells(base.cells, items[base.item])
    return fit_null(make_counts(pa.table({"factor": np.arange(len(base.o))}), cells))

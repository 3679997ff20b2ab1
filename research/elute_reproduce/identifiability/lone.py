"""Cells of items that are shown under one factor, apart from the others.

Nine tenths of the paper's documents stand at one position. There alternating updates make their relevance c/(n·o), or
1 where that is more: so what such items add to their factor follows from a list of their click rates, sorted, and sums
along it. Only the other items need a visit in every step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.offsets import take_groups
from elute.estimate.solve.problem import Codes, Floats, Problem

Ints = NDArray[np.int64]


class Lone(NamedTuple):
    """Items shown under one factor, by factor and click rate: those of factor t from `starts[t]` on."""

    starts: Ints
    rate: Floats
    shown: Floats
    """Impressions of all before; so with clicks, and with clicks times their rate."""
    clicks: Floats
    product: Floats


class Several(NamedTuple):
    """The other items, as cells."""

    offsets: Ints
    factor: Codes
    impressions: Floats
    clicks: Floats


def split(problem: Problem) -> tuple[Lone, Several]:
    """The items of a problem, in these two kinds."""
    offsets, factor, impressions, clicks = problem.cells
    n, c = impressions.astype(np.float64), clicks.astype(np.float64)
    cells = np.diff(offsets)
    at = offsets[np.flatnonzero(cells == 1)]
    at = at[np.lexsort((c[at] / n[at], factor[at]))]
    starts = np.searchsorted(factor[at], np.arange(problem.n_factors + 1))
    rate = c[at] / n[at]
    places, ends = take_groups(offsets, np.flatnonzero(cells > 1))
    return (
        Lone(starts, rate, _sum_before(n[at]), _sum_before(c[at]), _sum_before(c[at] * rate)),
        Several(ends, factor[places], n[places], c[places]),
    )


def _sum_before(values: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(values)))

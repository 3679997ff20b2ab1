"""A few impressions that keep a log apart: what to leave out so that the rest is one.

Real logs have a result that once appeared at position 47. All factors but those of the largest component (or, where
only clicks are missing, of the part with most of them) could go; if they hold a small share of the impressions, the
filter that leaves them out is named. It is tried on the cells first, where these are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells
from elute.cells.factors import is_position
from elute.estimate.solve import boundary
from elute.identify.components import Components
from elute.kernels.forest import connect_cells
from elute.known.precision import Precision
from elute.log import ClickLog

FEW = 0.01
"""Share of the impressions that may be left out."""

Flags = NDArray[np.bool_]


class Filter(NamedTuple):
    """An option of every verb that reads a log, and what it would leave out."""

    option: str
    value: int
    impressions: int
    share: float
    factors: list[dict[str, object]]


def find_filter(log: ClickLog, found: Components, precision: Precision | None) -> Filter | None:
    """What to leave out so that the rest is one component, or one part where only clicks are missing; never said where
    a formula ties factors, whose effects may be lost with them."""
    if log.roles.formula is not None:
        return None
    if len(found) > 1:
        largest = int(found.impressions.argmax())
        return propose_filter(log, found.of_factor == largest, precision is not None)
    if precision is None or not precision.apart.any():
        return None
    return propose_filter(log, ~precision.apart[precision.sample.problem.merged], True)


def propose_filter(log: ClickLog, inside: Flags, estimable: bool) -> Filter | None:
    """The filter that leaves out least, so that what stays is connected and, where the log has clicks, `estimable`;
    None where none does that with few impressions. `inside`: by factor, those that are one already."""
    shown = log.survey.impressions
    total = int(shown.sum())
    best: Filter | None = None
    for option, value, kept in _list_candidates(log, inside):
        lost = int(shown[~kept].sum())
        if lost > FEW * total or (best is not None and lost >= best.impressions):
            continue
        if bool((kept == inside).all()) or _holds(log, kept, estimable):
            rows = log.survey.factors.filter(~kept).slice(0, 20).to_pylist()
            best = Filter(option, value, lost, lost / total, rows)
    return best


def _list_candidates(log: ClickLog, inside: Flags) -> Iterator[tuple[str, int, Flags]]:
    """Filters without any factor from outside."""
    factors, shown = log.survey.factors, log.survey.impressions
    columns = [column for column in factors.column_names if is_position(factors, column)]
    if len(columns) == 1:
        position = np.asarray(factors[columns[0]].to_numpy(), np.float64)
        first = float(position[~inside].min())
        last = int(np.ceil(first)) - 1 if np.isfinite(first) else 0
        if (position <= last).any():
            yield "max_position", last, position <= last
    least = int(shown[~inside].max()) + 1
    if (shown >= least).any():
        yield "min_factor_impressions", least, shown >= least


def _holds(log: ClickLog, kept: Flags, estimable: bool) -> bool:
    """Whether the cells of these factors alone are one; never said where they are not in memory."""
    if log.partitions() is not None:
        return False
    counts, n = log.counts(), len(kept)
    cells = boundary.restrict(
        Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks),
        np.where(kept, 0, 1).astype(np.int32),
        np.zeros(counts.n_items, np.int32),
    )
    if len(np.unique(connect_cells(cells.offsets, cells.factor, n)[kept])) > 1:
        return False
    parts = boundary.find_parts(cells, n)[0][kept]
    return not estimable or len(np.unique(parts[parts != boundary.NOWHERE])) == 1

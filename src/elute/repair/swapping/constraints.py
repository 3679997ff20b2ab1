"""What a real system allows a swap plan to do, as it is said, and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import is_position
from elute.checking.check import Check
from elute.errors import EluteError
from elute.repair.allowed import Allowed

SHARE = 0.1
"""Of a query's pages that a plan may change by default."""


@dataclass(frozen=True)
class Constraints:
    """What a real system allows. Positions are values of the position column; items are rows of item columns; `fixed`
    and `movable` are bias columns. At most `share` of the pages of a query are changed, for `days` days, of which the
    log has `log_days`; without these for as long as the log took."""

    max_position_change: float | None = None
    only_positions: Sequence[float] | None = None
    exclude_items: pa.Table | None = None
    min_impressions: int = 0
    fixed: Sequence[str] = ()
    movable: Sequence[str] = ()
    share: float = SHARE
    days: float | None = None
    log_days: float | None = None

    @property
    def lengths(self) -> float:
        """How long the plan may run, as a multiple of the time of the log."""
        if self.days is None:
            return 1.0
        if self.log_days is None:
            raise EluteError("`days=` needs `log_days=`: how many days the log covers")
        return self.days / self.log_days


def translate(check: Check, constraints: Constraints) -> Allowed:
    """By factor and item of the log that was checked."""
    counts = check.counts
    column = next((c for c in counts.factors.column_names if is_position(counts.factors, c)), None)
    by_position = constraints.max_position_change is not None or constraints.only_positions is not None
    if by_position and column is None:
        raise EluteError(
            f"a limit on positions needs a numeric bias column named position, rank or slot; "
            f"the bias columns are: {', '.join(counts.factors.column_names)}"
        )
    position = counts.factors[column].cast(pa.float64()).to_numpy() if column is not None else None
    only = None
    if constraints.only_positions is not None and position is not None:
        only = np.isin(position, list(constraints.only_positions))
        if not only.any():
            raise EluteError(f"no factor has one of the positions {', '.join(map(str, constraints.only_positions))}")
    excluded = None
    if constraints.exclude_items is not None:
        excluded = _match_items(counts.items, constraints.exclude_items)
    return Allowed(only, excluded, constraints.min_impressions, constraints.max_position_change, position)


def _match_items(items: pa.Table, wanted: pa.Table) -> NDArray[np.bool_]:
    """A mask of the items that agree with a row of `wanted` in its columns (some or all of the item columns)."""
    keys = [column for column in wanted.column_names if column in items.column_names]
    if not keys:
        raise EluteError(f"`exclude_items=` needs one of the columns {', '.join(items.column_names)}")
    casted = pa.table({key: wanted[key].cast(items[key].type) for key in keys})
    numbered = items.select(keys).append_column("elute_row", pa.array(np.arange(items.num_rows)))
    hit = numbered.join(casted, keys=keys, join_type="left semi")["elute_row"].to_numpy()
    mask = np.zeros(items.num_rows, np.bool_)
    mask[hit] = True
    return mask

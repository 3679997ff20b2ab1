"""What one cheap pass over a log tells: its size, its factors, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.formula import BiasFormula, tie_factors
from elute.errors import EluteError


@dataclass(frozen=True)
class Survey:
    """Totals are over the usable rows: those without a null id and with at least one impression."""

    rows: int
    """Rows in the log, usable or not, that pass its filters."""
    usable: int
    unshown: int
    """Rows without a null id that count no impression."""
    nulls: dict[str, int]
    """Rows with a null, by id column; only columns that have any."""
    factors: pa.Table
    """The bias columns, one row a factor, in rising order. The row number is the factor's code."""
    rows_under: NDArray[np.int64]
    """By factor: usable rows."""
    keys: NDArray[np.uint64]
    """By factor: what stands for it in the engine's scans."""
    impressions: NDArray[np.int64]
    """By factor."""
    clicks: NDArray[np.int64]
    """By factor; zeros where the log has no click column."""
    filtered: int | None = 0
    """Rows that filters left out; None where nobody has counted them."""

    def __post_init__(self) -> None:
        total = float(self.impressions.sum(dtype=np.float64))
        if total >= _MOST:
            raise EluteError(f"{total:.3g} impressions are more than can be counted; see the column of `impressions=`")

    def tie(self, formula: BiasFormula) -> Survey:
        """The same, of factors that a formula ties."""
        return replace(self, factors=tie_factors(self.factors, formula))


_MOST = 2.0**63

"""Values of factors that come from elsewhere: an array, or a table such as a fit's `propensities.parquet`."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from elute.cells.factors import describe_some, row_key, to_rows
from elute.errors import EluteError

Floats = NDArray[np.float64]
Given: TypeAlias = ArrayLike | pa.Table
"""By factor."""

PROPENSITY = "propensity"
OFFSET = "offset"


def match_values(factors: pa.Table, given: Given, column: str) -> Floats:
    """The value of every factor, all of them numbers.

    `given`: an array in the order of `factors`, or a table with the bias columns and `column`, in any order; rows
    of factors that the log lacks do not matter."""
    if isinstance(given, pa.Table):
        values = _match_rows(factors, given, column)
    else:
        values = np.asarray(given, np.float64)
        if values.shape != (factors.num_rows,):
            raise EluteError(
                f"{column} has shape {values.shape} for {factors.num_rows:,} factors; give one number for each"
            )
    refuse_factors(
        factors, ~np.isfinite(values), f"the {column} is not a number for", "give each a number, or leave them out"
    )
    return values


def refuse_factors(factors: pa.Table, bad: NDArray[np.bool_], what: str, then: str) -> None:
    """Raise an error that names the `bad` factors, if there are any."""
    if bad.any():
        keys = [list(row.values()) for row in to_rows(factors, np.flatnonzero(bad))]
        raise EluteError(f"{what} {len(keys):,} factors: {describe_some(factors.column_names, keys)}; {then}")


def _match_rows(factors: pa.Table, given: pa.Table, column: str) -> Floats:
    names = factors.column_names
    absent = [name for name in (*names, column) if name not in given.column_names]
    if absent:
        raise EluteError(f"the given table has no column '{absent[0]}' (it has {', '.join(given.column_names)})")
    try:
        named = pa.table({name: given[name].cast(factors[name].type) for name in names})
        values = given[column].cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EluteError(f"the columns of the given table do not match the log's ({error})") from error
    keys = [row_key(row) for row in to_rows(named, range(named.num_rows))]
    place, times = {k: number for number, k in enumerate(keys)}, Counter(keys)
    wanted = [row_key(row) for row in to_rows(factors, range(factors.num_rows))]
    found = np.array([times[k] for k in wanted])
    refuse_factors(
        factors, found == 0, f"the given table has no {column} for", "fit them, or leave them out of the log"
    )
    refuse_factors(factors, found > 1, "the given table has more than one row for", "keep one row for each factor")
    return np.asarray(values[[place[k] for k in wanted]], np.float64)

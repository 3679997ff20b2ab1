"""Relevance and propensities that are known from elsewhere: a column of the log, or a file such as a fit's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.engines.sources import Source
from elute.errors import EluteError
from elute.factors import listed
from elute.identify.check import Check

Floats = NDArray[np.float64]

RELEVANCE = "relevance"
PROPENSITY = "propensity"


def relevance(check: Check, given: str) -> Floats:
    """By item; NaN where nothing is known. `given`: a column of the log (its mean over the item's rows), or a file
    with the item columns and a column `relevance`."""
    return _aligned(check, given, check.counts.items, RELEVANCE)


def propensity(check: Check, given: str) -> Floats:
    """By factor; every factor must be known. `given`: a column of the log (its mean over the factor's rows), or a
    file with the bias columns and a column `propensity`."""
    factors = check.counts.factors
    values = _aligned(check, given, factors, PROPENSITY)
    missing = factors.take(pa.array(np.flatnonzero(np.isnan(values)))).to_pylist()
    if missing:
        names = listed(factors.column_names, [list(row.values()) for row in missing])
        raise EluteError(f"{given} has no propensity for {len(missing):,} factors: {names}")
    return values


def _aligned(check: Check, given: str, named: pa.Table, column: str) -> Floats:
    """The values in the order of the rows of `named`."""
    keys = named.column_names
    if given in check.log.engine.columns:
        table, column = check.log.engine.means(tuple(keys), given), given
    else:
        table = Source(given).table()
    absent = [name for name in (*keys, column) if name not in table.column_names]
    if absent:
        raise EluteError(f"{given} has no column '{absent[0]}' (it has {', '.join(table.column_names)})")
    try:
        casted = pa.table({key: table[key].cast(named[key].type) for key in keys})
        known = casted.append_column("elute_value", table[column].cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise EluteError(f"{given}: its columns do not fit the log's ({error})") from error
    numbered = named.append_column("elute_row", pa.array(np.arange(named.num_rows)))
    joined = numbered.join(known, keys=keys, join_type="inner")
    values = np.full(named.num_rows, np.nan)
    values[joined["elute_row"].to_numpy()] = joined["elute_value"].to_numpy()
    return values

"""Relevance and propensities that are known from elsewhere: a column of the log, or a file such as a fit's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import describe_some
from elute.checking.check import Check
from elute.engines.duckdb.source import DuckDBSource
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.fits.folder import is_fit

Floats = NDArray[np.float64]
Given: TypeAlias = "Fit | pa.Table | NDArray[np.float64] | Sequence[float] | str | Path"
"""A fit or its folder, a table, an array, a column of the log, or a file."""

RELEVANCE = "relevance"
PROPENSITY = "propensity"


def align_relevance(check: Check, given: Given) -> Floats:
    """By item; NaN where nothing is known. `given`: an array, a fit or its folder, a column of the log (its mean over
    the item's rows), or a file or table with the item columns and a column `align_relevance`."""
    return _align(check, given, check.counts.items, RELEVANCE)


def align_propensity(check: Check, given: Given) -> Floats:
    """By factor; every factor must be known. `given`: an array, a fit or its folder, a column of the log (its mean over
    the factor's rows), or a file or table with the bias columns and a column `align_propensity`."""
    factors = check.counts.factors
    values = _align(check, given, factors, PROPENSITY)
    missing = factors.take(pa.array(np.flatnonzero(np.isnan(values)))).to_pylist()
    if missing:
        names = describe_some(factors.column_names, [list(row.values()) for row in missing])
        label = str(given) if isinstance(given, str | Path) else "the given propensities"
        raise EluteError(f"{label} has no propensity for {len(missing):,} factors: {names}")
    return values


def _align(check: Check, given: Given, named: pa.Table, column: str) -> Floats:
    """The values in the order of the rows of `named`."""
    keys = named.column_names
    if isinstance(given, np.ndarray | Sequence) and not isinstance(given, str):
        values = np.asarray(given, np.float64)
        if values.shape != (named.num_rows,):
            raise EluteError(f"`{column}=` is an array of shape {values.shape}; give {named.num_rows:,} values")
        return values
    label = str(given) if isinstance(given, str | Path) else f"the given {column}"
    if isinstance(given, str) and given in check.log.engine.columns:
        table, column = check.log.engine.compute_means(tuple(keys), given), given
    else:
        table = _read_table(given, column)
    absent = [name for name in (*keys, column) if name not in table.column_names]
    if absent:
        raise EluteError(f"{label} has no column '{absent[0]}' (it has {', '.join(table.column_names)})")
    try:
        casted = pa.table({key: table[key].cast(named[key].type) for key in keys})
        known = casted.append_column("elute_value", table[column].cast(pa.float64()))
        beyond = np.isinf(known["elute_value"].to_numpy()) | (known["elute_value"].to_numpy() < 0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EluteError(f"the columns of {label} do not match the log's ({error})") from error
    if beyond.any():
        raise EluteError(f"{label}: '{column}' is below 0 or infinite in {int(beyond.sum()):,} rows; correct them")
    numbered = named.append_column("elute_row", pa.array(np.arange(named.num_rows)))
    joined = numbered.join(known, keys=keys, join_type="inner")
    values = np.full(named.num_rows, np.nan)
    values[joined["elute_row"].to_numpy()] = joined["elute_value"].to_numpy()
    return values


def _read_table(given: Given, column: str) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    fit = given if isinstance(given, Fit) else Fit.load(given) if is_fit(given) else None
    if fit is None:
        return DuckDBSource(str(given)).read_table()
    table = fit.relevance if column == RELEVANCE else fit.propensities
    if table is None:
        raise EluteError(f"{fit.label} (model {fit.model}) has no propensities; fit with pbm")
    return table

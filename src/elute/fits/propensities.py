"""Propensities that are known from a fit or from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.engines.duckdb.source import DuckDBSource
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.fits.folder import is_fit

PropensitySource: TypeAlias = "Fit | pa.Table | str | Path"
"""A fit, its folder, a file with the bias columns and `propensity`, or a table like that."""


def read_propensities(source: PropensitySource | None) -> pa.Table | None:
    """The bias columns and `propensity`, one row a factor; None where nothing is given."""
    if source is None or isinstance(source, pa.Table):
        return source
    fit = source if isinstance(source, Fit) else Fit.load(source) if is_fit(source) else None
    if fit is None:
        return DuckDBSource(str(source)).read_table()
    if fit.propensities is None:
        raise EluteError(f"{fit.label} (model {fit.model}) has no propensities; fit pbm instead")
    return fit.propensities


def read_start(source: PropensitySource, factors: pa.Table) -> NDArray[np.float64]:
    """By factor, what an earlier fit found; for factors that it does not have, or has no propensity above 0 of, the
    median of the others."""
    known = read_propensities(source)
    columns = factors.column_names
    lacking = [name for name in (*columns, "propensity") if known is None or name not in known.column_names]
    if known is None or lacking:
        raise EluteError(f"`warm=` has no column '{lacking[0]}'; give a fit of the same bias columns")
    row = match(id_columns(factors, columns), id_columns(known, columns))
    found = np.append(known["propensity"].to_numpy().astype(np.float64), np.nan)[row]
    usable = np.isfinite(found) & (found > 0)
    if not usable.any():
        raise EluteError("`warm=` has a propensity of none of the log's factors; give a fit of the same log")
    return np.where(usable, found, np.median(found[usable]))

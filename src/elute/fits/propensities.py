"""Propensities that are known from a fit or from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

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

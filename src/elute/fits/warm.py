"""The propensities of an earlier fit as the start of this one, such as yesterday's for today's log."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import index_rows
from elute.cells.roles import Roles
from elute.errors import EluteError
from elute.estimate.models.given import PROPENSITY
from elute.fits.fit import Fit

EarlierFit: TypeAlias = "Fit | str | Path"
"""A fit, or its folder."""

WARM = "pbm"
"""The model that has a start. Models that close in by many small steps stop far enough from where they head that the
start would show; session click models keep no propensities."""


class WarmStart(NamedTuple):
    """Propensities by factor of the log, all above 0; `new`: those that the earlier fit did not have, which start from
    the median of the others."""

    propensity: NDArray[np.float64]
    new: NDArray[np.bool_]

    def to_dict(self) -> dict[str, int]:
        """`warm` of `fit.json`."""
        return {"factors": len(self.new) - int(self.new.sum()), "new": int(self.new.sum())}


def find_warm_start(source: EarlierFit, roles: Roles, factors: pa.Table) -> WarmStart:
    """What the earlier fit says of the factors of this log, whichever of them it knows."""
    fit = source if isinstance(source, Fit) else Fit.load(source)
    table = fit.propensities
    if fit.model != WARM or table is None:
        raise EluteError(f"`warm=`: {fit.label} is a fit of {fit.model}; give one of {WARM}")
    fit.require_columns(roles)
    theirs, ours = fit.provenance.formula, None if roles.formula is None else str(roles.formula)
    if theirs != ours:
        was, now = (f"the formula '{one}'" if one else "no formula" for one in (theirs, ours))
        raise EluteError(
            f"`warm=`: {fit.label} was fitted with {was}, the log is read with {now}; give the same `bias=`"
        )
    names = factors.column_names
    place, values = index_rows(table.select(names)), table[PROPENSITY].to_numpy()
    found = np.full(factors.num_rows, np.nan)
    for key, row in index_rows(factors).items():
        if key in place:
            found[row] = values[place[key]]
    new = ~((found > 0) & np.isfinite(found))
    if new.all():
        raise EluteError(f"`warm=`: {fit.label} has a propensity for none of this log's factors; fit without it")
    return WarmStart(np.where(new, np.median(found[~new]), found), new)

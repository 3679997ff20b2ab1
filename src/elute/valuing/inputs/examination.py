"""How likely a result is looked at, by factor of the log: what a fit says of that, and how surely.

Clicks are α_t·r + β_t. Of most models β is 0 and α the propensity; trust bias has both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.cells.factors import describe_some, to_rows
from elute.errors import EluteError
from elute.estimate.models.registry import GIVEN
from elute.fits.contents import find_error_column
from elute.fits.fit import Fit

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

Errors = Literal["this log", "another log", "none"]


@dataclass(frozen=True, eq=False)
class Examination:
    """By factor of the log. `alpha`: NaN where it is not known; `beta`: of trust bias, else 0. `log_se`: of α.
    `component`: within which ratios are known, -1 where there is no estimate. `group`: factors that share one α have
    one number. `errors`: whether α was estimated from the log at hand, from another, or comes without an error.
    `binomial`: whether by the full likelihood of clicks; else given each item's number of clicks."""

    alpha: Floats
    beta: Floats
    log_se: Floats
    component: Codes
    group: Codes
    errors: Errors
    binomial: bool
    affine: bool

    @property
    def known(self) -> NDArray[np.bool_]:
        """Factors under which a result can be valued."""
        return self.component >= 0

    @property
    def usable(self) -> Floats:
        """α, 0 where it is not known."""
        return np.where(self.known, self.alpha, 0.0)


def read_examination(fit: Fit, factors: pa.Table, impressions: Floats, clicks: Floats) -> Examination:
    """Of a fit, for the `factors` of a log, which were shown and clicked so often."""
    if fit.summary.get("baseline"):
        raise EluteError(f"{fit.label} (model {fit.model}) is a baseline that debiases nothing; fit pbm")
    table = fit.propensities
    if table is None:
        raise EluteError(
            f"{fit.label} (model {fit.model}) is of whole pages and has no propensities; give a fit of pbm, and this "
            "one as `under=`"
        )
    names = factors.column_names
    at = match(id_columns(factors, names), id_columns(table, names))
    if (at < 0).all():
        named = describe_some(names, [list(row.values()) for row in to_rows(factors, range(min(3, factors.num_rows)))])
        raise EluteError(f"{fit.label} knows none of the log's factors ({named}); fit this log, or check `bias=`")
    own = _is_of(table, at, impressions, clicks) and "score" not in fit.summary
    column = (
        "log_se" if own else find_error_column(table)
    )  # of this log, clusters are looked at where they are asked for
    alpha, log_se = (_look_up(table, name, at) for name in ("propensity", column))
    affine = "offset" in table.column_names
    given = fit.model in GIVEN
    known = np.isfinite(alpha) & (alpha > 0) & (given | np.isfinite(log_se))
    of_component = np.zeros(len(at), np.float64) if given else _look_up(table, "component", at)
    component = np.where(known, np.nan_to_num(of_component), -1).astype(np.int32)
    beta = np.nan_to_num(_look_up(table, "offset", at)) if affine else np.zeros(len(at))
    keys = np.stack((np.where(known, alpha, -1.0 - np.arange(len(at))), component), axis=1)
    group = np.unique(keys, axis=0, return_inverse=True)[1].astype(np.int32).reshape(-1)
    prior = fit.summary.get("prior") or {}
    return Examination(
        alpha=np.where(known, alpha, np.nan),
        beta=beta,
        log_se=np.where(known, np.nan_to_num(log_se), np.nan),
        component=component,
        group=group,
        errors="none" if given else "this log" if own else "another log",
        binomial=prior.get("relevance") is None,
        affine=affine,
    )


def _look_up(table: pa.Table, name: str, at: NDArray[np.int64]) -> Floats:
    values = np.asarray(table[name].cast(pa.float64()).to_numpy(), np.float64)
    return np.where(at >= 0, values[at], np.nan)


def _is_of(table: pa.Table, at: NDArray[np.int64], shown: Floats, clicked: Floats) -> bool:
    """Whether a table of propensities was made from clicks that were counted so."""
    if not {"impressions", "clicks"} <= set(table.column_names) or table.num_rows != len(at):
        return False
    theirs = (_look_up(table, name, at) for name in ("impressions", "clicks"))
    return all(np.array_equal(mine, other) for mine, other in zip((shown, clicked), theirs, strict=True))

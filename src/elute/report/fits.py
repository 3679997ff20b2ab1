"""Fits as a page shows them: their tables, from a folder that `elute fit` wrote or from an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from elute.audit.fits import read_fit
from elute.estimate.base import Estimator
from elute.estimate.saved import read_part
from elute.roles import Roles


@dataclass(frozen=True, eq=False)
class ShownFit:
    """A fit by name. `propensities` is None for models of whole pages. `trouble`: why it is not to be trusted."""

    name: str
    model: str
    relevance: pa.Table
    propensities: pa.Table | None
    trouble: str = ""


def read_shown(folder: str | Path, roles: Roles) -> ShownFit:
    """A fit from its folder; refuses one that was made for other columns."""
    fit = read_fit(folder, roles)
    relevance = read_part(fit.folder / "relevance.parquet", ("relevance", "clicks", "impressions"))
    propensities = None
    path = fit.folder / "propensities.parquet"
    if path.exists():
        propensities = read_part(path, (*roles.bias, "propensity", "log_se"))
    trouble = "" if fit.summary.get("converged") is not False else str(fit.summary.get("reason") or "did not converge")
    return ShownFit(fit.folder.resolve().name, fit.model, relevance, propensities, trouble)


def shown_fit(name: str, model: str, fit: Estimator) -> ShownFit:
    """A fit from an estimator that has been fitted."""
    trouble = "" if fit.converged_ else fit.reason_ or "did not converge"
    return ShownFit(name, model, fit.relevance_, fit.propensities_, trouble)

"""A fit on disk: two tables and a summary."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa

from elute.estimate.base import Estimator
from elute.estimate.bootstrap import Bootstrap
from elute.estimate.pbm import PBM
from elute.files import write_parquet, write_parts, write_text


def summary(name: str, fit: Estimator) -> dict[str, Any]:
    """The fields of `elute fit --json`; a likelihood of 0, whose log JSON cannot write, is null."""
    priors = {"prior": fit.prior_} if isinstance(fit, PBM) else {}
    return {
        "model": name,
        "iterations": fit.iterations_,
        "converged": fit.converged_,
        "reason": fit.reason_ or None,
        "log_likelihood": fit.log_likelihood_ if math.isfinite(fit.log_likelihood_) else None,
        "components": int(fit.component_.max()) + 1,
        "seconds": fit.seconds_,
        **priors,
    }


def save(
    folder: str | Path,
    fields: dict[str, Any],
    fit: Estimator,
    provenance: dict[str, Any],
    drawn: Bootstrap | None = None,
) -> None:
    """Write `propensities.parquet`, `relevance.parquet` and, last, `fit.json` with the fields of `summary`: a folder
    with it is complete. A bootstrap adds the ends of its intervals, `low` and `high`, to the propensities."""
    target = Path(folder)
    (target / "fit.json").unlink(missing_ok=True)
    propensities = fit.propensities_
    if drawn is not None:
        for name, values in (("low", drawn.propensity_low), ("high", drawn.propensity_high)):
            propensities = propensities.append_column(name, pa.array(values))
    write_parquet(target / "propensities.parquet", propensities)
    write_parts(target / "relevance.parquet", fit.relevance_parts())
    write_text(target / "fit.json", json.dumps({**fields, "provenance": provenance}, indent=1) + "\n")

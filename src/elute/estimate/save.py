"""A fit on disk: two tables and a summary."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from elute.estimate.base import Estimator
from elute.files import write_parquet, write_text


def summary(name: str, fit: Estimator) -> dict[str, Any]:
    """The fields of `elute fit --json`; a likelihood of 0, whose log JSON cannot write, is null."""
    return {
        "model": name,
        "iterations": fit.iterations_,
        "converged": fit.converged_,
        "reason": fit.reason_ or None,
        "log_likelihood": fit.log_likelihood_ if math.isfinite(fit.log_likelihood_) else None,
        "components": int(fit.component_.max()) + 1,
        "seconds": fit.seconds_,
    }


def save(folder: str | Path, name: str, fit: Estimator, provenance: dict[str, Any]) -> None:
    """Write `propensities.parquet`, `relevance.parquet` and, last, `fit.json`: a folder with it is complete."""
    target = Path(folder)
    (target / "fit.json").unlink(missing_ok=True)
    write_parquet(target / "propensities.parquet", fit.propensities_)
    write_parquet(target / "relevance.parquet", fit.relevance_)
    write_text(target / "fit.json", json.dumps({**summary(name, fit), "provenance": provenance}, indent=1) + "\n")

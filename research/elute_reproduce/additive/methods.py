"""What people do with several bias columns, on one log: effects that multiply, and the alternatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.checking.check import check
from elute.estimate.models.base import Estimator
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.log import as_log
from elute.repair.merge_plan import plan_merges
from elute_reproduce.additive.world import ADDITIVE, DOCS, AdditiveWorld, tie

Floats = NDArray[np.float64]


def _merge(counts: Counts) -> Estimator:
    plan = plan_merges(check(as_log(counts), target_log_se=None))
    return PBM().fit(counts, plan, allow_unidentified=True)


METHODS: dict[str, Callable[[Counts], Estimator]] = {
    "additive": lambda counts: PBM().fit(tie(counts, ADDITIVE), allow_unidentified=True),
    "product": lambda counts: PBM().fit(counts, allow_unidentified=True),
    "merging": _merge,
    "without layout": lambda counts: PBM().fit(tie(counts, "position:device"), allow_unidentified=True),
    "smooth prior": lambda counts: PBM(prior="smooth").fit(counts, allow_unidentified=True),
    "no debias": lambda counts: Naive().fit(counts, allow_unidentified=True),
}


def score(world: AdditiveWorld, fit: Estimator) -> dict[str, float]:
    """Errors of log propensities around their mean, and the share of pairs within a query in the right order."""
    seen = np.isin(np.arange(len(world.o)), world.factor)
    log_o = np.log(np.where(fit.propensity_ > 0, fit.propensity_, np.nan)) - np.log(world.o)
    log_o = log_o[seen & np.isfinite(log_o)]
    return {
        "propensity error": float(np.sqrt(np.mean((log_o - log_o.mean()) ** 2))) if len(log_o) else float("nan"),
        "pairs right": _order(world.r.reshape(-1, DOCS), np.asarray(fit.relevance_values_).reshape(-1, DOCS)),
    }


def _order(truth: Floats, found: Floats) -> float:
    a, b = np.triu_indices(truth.shape[1], 1)
    real, said = truth[:, a] - truth[:, b], found[:, a] - found[:, b]
    return float(np.mean(np.where(said == 0, 0.5, (real > 0) == (said > 0))))

"""CMIP = I(model's score; policy's score | grade) (Eq. 11 and 12), with its error and a test of debiasedness.

As published, documents count as drawn independently. Those of a query are not: they share what its users find relevant,
and what its policy scores. With `queries` the policy's scores become ranks within their query (the paper's r_l is the
expected rank), permutations stay within queries, and the interval counts queries, not documents."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from elute.auditing.cmip.copula import copula
from elute.auditing.cmip.independence import p_value
from elute.auditing.cmip.knn import knn
from elute.auditing.cmip.ksg import ksg
from elute.auditing.cmip.local import Local
from elute.auditing.cmip.strata import Floats, Ints, Stratum, stratify
from elute.auditing.cmip.within import cluster_variance, permute_within, rank_within
from elute.errors import EluteError
from elute.options.takes import takes

Name = Literal["knn", "ksg", "copula", "dv"]
_95_PERCENT = 1.959963984540054


@dataclass(frozen=True)
class Cmip:
    """Information in nats. It is never below 0, but its estimate can be, by its error.

    `low` and `high` hold it with 95% confidence (NaN for `dv`, which has no interval); `p_value` is that of "debiased":
    independence within grades, by permutation. `n`: documents used. `notes`: what a reader of the figure should know.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    estimator: str
    n: int
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        interval = "" if math.isnan(self.low) else f" [{self.low:.4f}, {self.high:.4f}]"
        figures = f"CMIP {self.estimate:.4f} nats{interval}, p = {self.p_value:.2g}"
        if self.p_value <= 0.05:
            return f"Not debiased: beyond relevance, the scores still say where the policy ranked. {figures}."
        return f"No sign of the policy in the scores beyond relevance. {figures}."

    def to_dict(self) -> dict[str, Any]:
        ends = {name: None if math.isnan(getattr(self, name)) else getattr(self, name) for name in ("low", "high")}
        return {**asdict(self), **ends, "notes": list(self.notes), "verdict": self.sentence}


@takes(grades=None)
def cmip(
    scores: ArrayLike,
    policy_scores: ArrayLike,
    grades: ArrayLike,
    estimator: Name | None = None,
    seed: int = 0,
    permutations: int = 999,
    queries: ArrayLike | None = None,
) -> Cmip:
    """How much `scores` and `policy_scores` of the same documents share beyond `grades`; 0 is debiased.

    `estimator`: "knn" (the default), "ksg" (plain nearest neighbours), "copula" (monotone dependence only) or "dv"
    (the paper's classifier; needs elute[trees]; it has no interval). Documents count as drawn independently, as in the
    paper (section 4.1), unless `queries` names the query of each.
    """
    name = estimator or "knn"
    if name not in get_args(Name):
        raise EluteError(f"no estimator '{name}' of CMIP; there are: {', '.join(get_args(Name))}")
    if permutations < 1:
        raise EluteError(f"a p-value needs at least 1 permutation; permutations is {permutations}")
    rng = np.random.default_rng(seed)
    of_query = None if queries is None else np.unique(np.asarray(queries), return_inverse=True)[1].astype(np.int64)
    if of_query is not None and of_query.shape != np.shape(policy_scores):
        raise EluteError(f"queries must name the query of every document; there are {len(of_query):,}")
    ranked = policy_scores if of_query is None else rank_within(policy_scores, of_query)
    strata, notes = stratify(scores, ranked, grades, rng)
    informative = [s for s in strata if not s.is_constant]
    n = sum(s.n for s in strata)
    mean, error = _estimate(name, strata, informative, of_query, rng) if informative else (0.0, 0.0)
    if any(abs(np.corrcoef(s.x, s.y)[0, 1]) > 0.9999 for s in informative):
        notes.append("in a grade the two scores rank alike; their information has no finite value, only a lower bound")
    p = 1.0
    if informative:
        draw = p_value if of_query is None else partial(permute_within, of_query)
        p = draw(informative, permutations, rng)
    if math.isnan(error):
        notes.append("the estimator dv is a lower bound without an interval; knn has one")
        return Cmip(mean, math.nan, math.nan, p, name, n, tuple(notes))
    low, high = mean - _95_PERCENT * error, mean + _95_PERCENT * error
    return Cmip(mean, low, high, p, name, n, tuple(notes))


def _estimate(
    name: Name, strata: list[Stratum], informative: list[Stratum], query: Ints | None, rng: np.random.Generator
) -> tuple[float, float]:
    """The information over all strata, and its standard error."""
    if name == "dv":
        from elute.auditing.cmip.dv import dv

        share = sum(s.n for s in informative) / sum(s.n for s in strata)
        return share * dv(informative, rng), math.nan
    if name == "knn":
        return _pool(strata, lambda stratum: knn(stratum, rng), query)
    return _pool(strata, ksg if name == "ksg" else copula, query)


def _pool(strata: list[Stratum], estimator: Callable[[Stratum], Local], query: Ints | None) -> tuple[float, float]:
    """The mean over all documents, and its standard error."""
    parts = [Local(np.zeros(s.n)) if s.is_constant else estimator(s) for s in strata]
    values: Floats = np.concatenate([part.log_ratio for part in parts])
    extra = sum(part.extra * len(part.log_ratio) for part in parts) / len(values)
    if query is None:
        return float(values.mean()), float(np.sqrt((values.var() + extra) / len(values)))
    rows = np.concatenate([s.rows for s in strata])
    return float(values.mean()), float(np.sqrt(cluster_variance(values, query[rows]) + extra / len(values)))

"""CMIP = I(model's score; policy's score | grade) (Eq. 11 and 12), with its error and a test of debiasedness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from elute.auditing.cmip.copula import copula
from elute.auditing.cmip.independence import p_value
from elute.auditing.cmip.knn import knn
from elute.auditing.cmip.ksg import ksg
from elute.auditing.cmip.local import Local
from elute.auditing.cmip.strata import Stratum, stratify
from elute.errors import EluteError

Name = Literal["knn", "ksg", "copula", "dv"]
_95_PERCENT = 1.959963984540054


@dataclass(frozen=True)
class Cmip:
    """Information in nats. It is never below 0, but its estimate can be, by its error.

    `low` and `high` hold it with 95% confidence; `p_value` is that of "debiased": independence within grades, by
    permutation. `n`: documents used. `notes`: what a reader of the figure should know.
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
        figures = f"CMIP {self.estimate:.4f} nats [{self.low:.4f}, {self.high:.4f}], p = {self.p_value:.2g}"
        if self.p_value <= 0.05:
            return f"Not debiased: beyond relevance, the scores still say where the policy ranked. {figures}."
        return f"No sign of the policy in the scores beyond relevance. {figures}."

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "notes": list(self.notes), "verdict": self.sentence}


def cmip(
    scores: ArrayLike,
    policy_scores: ArrayLike,
    grades: ArrayLike,
    estimator: Name | None = None,
    seed: int = 0,
    permutations: int = 999,
) -> Cmip:
    """How much `scores` and `policy_scores` of the same documents share beyond `grades`; 0 is debiased.

    `estimator`: "knn" (the default), "ksg" (plain nearest neighbours), "copula" (monotone dependence only) or "dv"
    (the paper's classifier; needs elute[trees]). Documents count as drawn independently, as in the paper (section 4.1).
    """
    name = estimator or "knn"
    if name not in get_args(Name):
        raise EluteError(f"no estimator '{name}' of CMIP; there are: {', '.join(get_args(Name))}")
    if permutations < 1:
        raise EluteError(f"a p-value needs at least 1 permutation; permutations is {permutations}")
    rng = np.random.default_rng(seed)
    strata, notes = stratify(scores, policy_scores, grades, rng)
    informative = [s for s in strata if not s.is_constant]
    n = sum(s.n for s in strata)
    mean, error = _estimate(name, strata, informative, rng) if informative else (0.0, 0.0)
    if any(abs(np.corrcoef(s.x, s.y)[0, 1]) > 0.9999 for s in informative):
        notes.append("in a grade the two scores rank alike; their information has no finite value, only a lower bound")
    p = p_value(informative, permutations, rng) if informative else 1.0
    low, high = mean - _95_PERCENT * error, mean + _95_PERCENT * error
    return Cmip(mean, low, high, p, name, n, tuple(notes))


def _estimate(
    name: Name, strata: list[Stratum], informative: list[Stratum], rng: np.random.Generator
) -> tuple[float, float]:
    """The information over all strata, and its standard error."""
    if name == "dv":
        from elute.auditing.cmip.dv import dv

        share = sum(s.n for s in informative) / sum(s.n for s in strata)
        mean, error = dv(informative, rng)
        return share * mean, share * error
    if name == "knn":
        return _pool(strata, lambda stratum: knn(stratum, rng))
    return _pool(strata, ksg if name == "ksg" else copula)


def _pool(strata: list[Stratum], estimator: Callable[[Stratum], Local]) -> tuple[float, float]:
    """The mean over all documents, and its standard error."""
    parts = [Local(np.zeros(s.n)) if s.is_constant else estimator(s) for s in strata]
    values = np.concatenate([part.log_ratio for part in parts])
    extra = sum(part.extra * len(part.log_ratio) for part in parts) / len(values)
    return float(values.mean()), float(np.sqrt((values.var() + extra) / len(values)))

"""A weak linear ranker: a Ranking SVM on few labelled queries, the usual first ranker of simulated logs (Appendix C.1
of the identifiability paper: 1% of the training data).

    minimise  ½‖w‖² + (c / m) Σ max(0, 1 − w·(x_i − x_j))²    over the m pairs of a query with grade_i > grade_j

is Joachims' objective (2006) with the hinge squared, which makes it smooth: the minimum is unique and L-BFGS finds it,
the same on every run. Pairs are never written down; their sum costs one pass over them for each evaluation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from elute.errors import EluteError
from elute.kernels.jit import jit
from elute.options.kinds import SHARE, Number
from elute.options.takes import declares
from elute.ranking.data import RankingData
from elute.ranking.normalise import LogStandard, split_rows
from elute.simulation.policies.base import Floats, Policy


@declares(share=SHARE, c=Number(0, 1e12, (True, False)))
class RankingSVM(Policy):
    """Linear scores learnt from a `share` of the training queries, drawn by `seed`.

    Features are taken to the scale of `normalise.LogStandard`, fitted on all training queries: one that hardly varies
    among the few drawn would else be blown up in the others. `c` is the weight of the mean squared hinge against
    ½‖w‖².
    """

    def __init__(self, *, share: float = 0.01, c: float = 1.0, temperature: float = 0.0, seed: int = 0) -> None:
        super().__init__(temperature=temperature, seed=seed)
        self.share = share
        self.c = c

    def fit(self, train: RankingData) -> RankingSVM:
        """Learn from a share of the queries, at least one."""
        n = max(1, round(self.share * train.n_queries))
        chosen = np.zeros(train.n_queries, np.bool_)
        chosen[np.random.default_rng(self.seed).choice(train.n_queries, n, replace=False)] = True
        sample = train.keep(chosen[train.query_of])
        self.scale_ = LogStandard.fit(train)
        self.weights_ = solve(self.scale_(sample), self.c)
        return self

    def scores(self, data: RankingData) -> Floats:
        if not hasattr(self, "weights_"):
            raise EluteError("the Ranking SVM has not been trained; call fit(train) first")
        return np.concatenate([self.scale_.apply(part) @ self.weights_ for part in split_rows(data.features)])


def solve(data: RankingData, c: float) -> Floats:
    """The weights w at the minimum."""
    features = data.features.astype(np.float64)
    pairs = _count_pairs(data.offsets, data.grades)
    if pairs == 0:
        raise EluteError(
            f"in the {data.n_queries} queries drawn no two documents of a query differ in grade; "
            "raise share or change seed"
        )

    def objective(w: Floats) -> tuple[float, Floats]:
        loss, slope = _hinge(data.offsets, data.grades, features @ w)
        return 0.5 * float(w @ w) + c / pairs * loss, w + c / pairs * (features.T @ slope)

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-8}
    end = minimize(objective, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(end.x, np.float64)


@jit
def _count_pairs(offsets: NDArray[np.int64], grades: NDArray[np.int32]) -> int:
    n = 0
    for query in range(offsets.shape[0] - 1):
        for i in range(offsets[query], offsets[query + 1]):
            for j in range(offsets[query], offsets[query + 1]):
                n += grades[i] > grades[j]
    return n


@jit
def _hinge(offsets: NDArray[np.int64], grades: NDArray[np.int32], scores: Floats) -> tuple[float, Floats]:
    """The sum of squared hinges, and its slope in every score."""
    loss = 0.0
    slope = np.zeros_like(scores)
    for query in range(offsets.shape[0] - 1):
        for i in range(offsets[query], offsets[query + 1]):
            for j in range(offsets[query], offsets[query + 1]):
                if grades[i] > grades[j]:
                    short = max(1.0 - (scores[i] - scores[j]), 0.0)
                    loss += short * short
                    slope[i] -= 2.0 * short
                    slope[j] += 2.0 * short
    return loss, slope

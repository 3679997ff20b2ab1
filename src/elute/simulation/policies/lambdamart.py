"""LambdaMART, trained on grades: the CMIP paper's production-like policy (Section 5.1.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from elute.errors import EluteError, MissingExtra
from elute.options.kinds import Number, Whole
from elute.options.takes import declares
from elute.ranking.data import RankingData
from elute.simulation.policies.base import Floats, Policy


@declares(trees=Whole(1, 10**6), leaves=Whole(2, 131_072), learning_rate=Number(0, 1e6, (True, False)))
class LambdaMART(Policy):
    """Boosted trees by LightGBM's lambdarank. The defaults are the CMIP paper's: 100 trees of 31 leaves at rate 0.1."""

    def __init__(
        self,
        *,
        trees: int = 100,
        leaves: int = 31,
        learning_rate: float = 0.1,
        temperature: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(temperature=temperature, seed=seed)
        self.trees = trees
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.model_: Any = None

    def fit(self, train: RankingData) -> LambdaMART:
        """Learn from graded documents."""
        try:
            import lightgbm
        except ImportError as error:
            raise MissingExtra("LambdaMART", "LightGBM", "trees") from error
        settings = {
            "objective": "lambdarank",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "label_gain": [float(2**grade - 1) for grade in range(int(train.grades.max(initial=0)) + 1)],
            "verbosity": -1,
        }
        documents = lightgbm.Dataset(train.features, label=train.grades, group=np.diff(train.offsets))
        self.model_ = lightgbm.train(settings, documents, num_boost_round=self.trees)
        return self

    def scores(self, data: RankingData) -> Floats:
        if self.model_ is None:
            raise EluteError("LambdaMART has not been trained; call fit(train) first")
        if data.features.shape[1] != self.model_.num_feature():
            raise EluteError(
                f"the data have {data.features.shape[1]} features, LambdaMART was trained on "
                f"{self.model_.num_feature()}; read both with the same n_features"
            )
        return np.asarray(self.model_.predict(data.features), np.float64)

"""The estimators by the names the command line knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from elute.errors import EluteError
from elute.estimate.models.affine import Affine
from elute.estimate.models.base import Estimator
from elute.estimate.models.ctr import CTR
from elute.estimate.models.dla import DLA
from elute.estimate.models.em import RegressionEM
from elute.estimate.models.harvest import Harvest
from elute.estimate.models.ipw import IPW, AffineIPW
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.models.two_tower import TwoTower

MODELS: dict[str, Callable[..., Estimator]] = {
    "pbm": PBM,
    "affine": Affine,
    "em": RegressionEM,
    "dla": DLA,
    "two-tower": TwoTower,
    "harvest": Harvest,
    "harvest-pivot": partial(Harvest, method="pivot"),
    "score-adjusted": ScoreAdjusted,
    "ipw": IPW,
    "affine-ipw": AffineIPW,
    "naive": Naive,
    "ctr": CTR,
}

GIVEN = ("ipw", "affine-ipw")
"""Those that take propensities from elsewhere, and with them any log: known propensities join components."""


def build(name: str, **options: Any) -> Estimator:
    """The estimator of this name; an option that is None is left at the model's own choice."""
    given = {option: value for option, value in options.items() if value is not None}
    known = inspect.signature(MODELS[name]).parameters
    refused = [option for option in given if option not in known]
    if refused:
        raise EluteError(f"model '{name}' has no `{refused[0]}=`")
    if name in GIVEN and "propensities" not in given:
        raise EluteError(f"model '{name}' needs `propensities=`: a fit, its folder, or a file with its columns")
    if MODELS[name] is ScoreAdjusted and "score" not in given:
        raise EluteError(f"model '{name}' needs `score=`: the column with what the logging policy ranked by")
    return MODELS[name](**given)

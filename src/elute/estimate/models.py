"""The estimators by the names the command line knows."""

from __future__ import annotations

from elute.estimate.affine import Affine
from elute.estimate.base import Estimator
from elute.estimate.ctr import CTR
from elute.estimate.dla import DLA
from elute.estimate.em import RegressionEM
from elute.estimate.naive import Naive
from elute.estimate.pbm import PBM
from elute.estimate.two_tower import TwoTower

MODELS: dict[str, type[Estimator]] = {
    "pbm": PBM,
    "affine": Affine,
    "em": RegressionEM,
    "dla": DLA,
    "two-tower": TwoTower,
    "naive": Naive,
    "ctr": CTR,
}

"""All learners by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from elute.errors import EluteError
from elute.neural.learner import Learner
from elute.neural.learners.dla import DLA
from elute.neural.learners.gradient_reversal import GradientReversal
from elute.neural.learners.ipw import IPW
from elute.neural.learners.ipw_random import build_ipw_random
from elute.neural.learners.multr import MULTR
from elute.neural.learners.naive import Naive
from elute.neural.learners.observation_dropout import ObservationDropout
from elute.neural.learners.pairwise_debias import PairwiseDebias
from elute.neural.learners.rem import RegressionEM
from elute.neural.learners.upe import AFTER_PUBLIC_CODE, UPE
from elute.neural.learners.vectorization import Vectorization

LEARNERS: Mapping[str, Callable[..., Learner]] = {
    "naive": Naive,
    "ipw": IPW,
    "ipw-random": build_ipw_random,
    "dla": DLA,
    "rem": RegressionEM,
    "pairwise-debias": PairwiseDebias,
    "vectorization": Vectorization,
    "multr": MULTR,
    "grad-reversal": GradientReversal,
    "observation-dropout": ObservationDropout,
    "upe": partial(UPE, **AFTER_PUBLIC_CODE),
    "upe-mrr": partial(UPE, confounding="mrr", **AFTER_PUBLIC_CODE),
    "upe-dcg": partial(UPE, confounding="dcg", **AFTER_PUBLIC_CODE),
    "upe-n": partial(UPE, confounding="none", target="clicks", frozen=False),
}
"""The last three are the ablations of 5.5: positions as the confounding target (Eq. 15), and one joint model."""


def build_learner(name: str, **settings: Any) -> Learner:
    """The learner of that name with these settings."""
    if name not in LEARNERS:
        raise EluteError(f"no learner '{name}'; there are: {', '.join(LEARNERS)}")
    return LEARNERS[name](**settings)

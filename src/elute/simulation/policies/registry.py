"""The policies by the names the command line knows, each built from plain settings and trained where it learns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.ranking.data import RankingData
from elute.simulation.policies.base import Policy
from elute.simulation.policies.lambdamart import LambdaMART
from elute.simulation.policies.noisy_oracle import NoisyOracle
from elute.simulation.policies.ranking_svm import RankingSVM
from elute.simulation.policies.scored import Scored
from elute.simulation.policies.uniform import Uniform

POLICIES: dict[str, Callable[..., Policy]] = {
    "uniform": Uniform,
    "noisy-oracle": NoisyOracle,
    "lambdamart": LambdaMART,
    "weak": RankingSVM,
    "scores": Scored,
}


def settings_of(name: str) -> tuple[str, ...]:
    """The settings that a policy takes; scores are given apart."""
    if name not in POLICIES:
        raise EluteError(f"no policy '{name}'; there are: {', '.join(POLICIES)}")
    return tuple(s for s in inspect.signature(POLICIES[name]).parameters if s != "scores")


def build_policy(name: str, data: RankingData, scores: NDArray[np.floating] | None = None, **settings: Any) -> Policy:
    """The policy of this name, trained on the grades of `data` where it learns."""
    policy = make_policy(name, scores, **settings)
    return policy.fit(data) if isinstance(policy, LambdaMART | RankingSVM) else policy


def make_policy(name: str, scores: NDArray[np.floating] | None = None, **settings: Any) -> Policy:
    """The policy of this name, before it has learnt anything."""
    unknown = [setting for setting in settings if setting not in settings_of(name)]
    if unknown:
        takes = f"it takes: {', '.join(settings_of(name))}" if settings_of(name) else "it takes none"
        raise EluteError(f"the policy '{name}' has no setting '{unknown[0]}'; {takes}")
    if (name == "scores") != (scores is not None):
        raise EluteError("the policy 'scores' needs `scores=`, and no other policy takes them")
    return POLICIES[name](**settings) if scores is None else Scored(scores, **settings)

"""Logging policies: how pages come about in simulated logs. One policy a file."""

from elute.simulate.policies.base import Policy, Rankings, Sampler
from elute.simulate.policies.lambdamart import LambdaMART
from elute.simulate.policies.noisy_oracle import NoisyOracle
from elute.simulate.policies.ranking_svm import RankingSVM
from elute.simulate.policies.scored import Scored
from elute.simulate.policies.uniform import Uniform

__all__ = ["LambdaMART", "NoisyOracle", "Policy", "RankingSVM", "Rankings", "Sampler", "Scored", "Uniform"]

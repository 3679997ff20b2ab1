"""Logging policies: how pages come about in simulated logs. One policy a file."""

from elute.simulation.policies.base import Policy, Rankings, Sampler
from elute.simulation.policies.lambdamart import LambdaMART
from elute.simulation.policies.noisy_oracle import NoisyOracle
from elute.simulation.policies.ranking_svm import RankingSVM
from elute.simulation.policies.scored import Scored
from elute.simulation.policies.uniform import Uniform

__all__ = ["LambdaMART", "NoisyOracle", "Policy", "RankingSVM", "Rankings", "Sampler", "Scored", "Uniform"]

"""How often the sign of a difference is wrong: pairs of a log judged by all of its pairs.

A pair's probability P(r_i > r_j) is as good as its prior. Where most pairs are nearly tied, or items of a position are
more alike than the prior takes them to be, the few pairs that stand out do so by chance more often than P says. So
z = Φ⁻¹(P)/√e of all pairs is looked at, where e is the share of the pair's posteriors that is their own: the division
takes back what the prior has drawn together. If z is a difference in standard errors, plus noise of standard deviation
1, how the differences are distributed shows in how the z are. A mixture of normal distributions around 0, one without
any spread, is fitted to them, and gives each z the probability that its sign is wrong (the local false sign rate of
Stephens, 2017, False discovery rates: a new deal).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

_SPREADS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Of differences, in standard errors."""

_FARTHEST, _BINS = 8.0, 320
_EDGES = np.linspace(0.0, _FARTHEST, _BINS + 1)
_AT = (_EDGES[1:] + _EDGES[:-1]) / 2

_DOUBT = 0.1
"""Share of pairs without any difference that is taken to be among the others, of 200 at most: few claim little."""

_LEAST = 0.5
"""Below this share a pair counts as having it."""

_ROUNDS = 500


@dataclass(frozen=True, eq=False)
class Signs:
    """By |z| on a grid: the probability that the sign is right."""

    at: Floats
    right: Floats

    def adjust(self, p: Floats, evidence: Floats) -> Floats:
        """Probabilities P(r_i > r_j), with their signs as sure as the log shows them to be."""
        z = find_z(p, evidence)
        sure = np.interp(np.abs(z), np.append(0.0, self.at), np.append(0.5, self.right))
        return np.asarray(np.where(z >= 0, sure, 1.0 - sure))


def find_z(p: Floats, evidence: Floats) -> Floats:
    """Within bounds."""
    return np.asarray(np.clip(ndtri(p) / np.sqrt(np.maximum(evidence, _LEAST)), -_FARTHEST, _FARTHEST))


def count_pairs(p: Floats, evidence: Floats) -> NDArray[np.int64]:
    """How many pairs have which |z|; `p` whichever way round."""
    return np.histogram(np.abs(find_z(p, evidence)), bins=_EDGES)[0]


def take_as_given() -> Signs:
    """As sure as the posteriors have them."""
    return Signs(_AT, ndtr(_AT))


def fit_signs(counted: NDArray[np.int64]) -> Signs:
    """From the pairs of a log, by `count_pairs`."""
    pairs = int(counted.sum())
    if not pairs:
        return take_as_given()
    wide = np.sqrt(1.0 + _SPREADS**2)
    density = np.exp(-0.5 * (_AT[:, None] / wide) ** 2) / wide
    doubt = np.zeros(len(_SPREADS))
    doubt[0] = _DOUBT * min(pairs, 200)
    weight = np.full(len(_SPREADS), 1.0 / len(_SPREADS))
    for _ in range(_ROUNDS):
        joint = density * weight
        weight = (counted @ (joint / joint.sum(axis=1, keepdims=True)) + doubt) / (pairs + doubt[0])
    joint = density * weight
    right = (joint * ndtr(_AT[:, None] * _SPREADS / wide)).sum(axis=1) / joint.sum(axis=1)
    return Signs(_AT, np.maximum.accumulate(right))

"""Degrees of freedom that supports leave to a model's factors, certified where possible.

Parts: factors joined by supports that put an equation on them. A part's null dimension has two lower bounds, the
gauge of its factors and parameters less equations. A rank modulo a prime at a random point is at most the generic
rank, so a null dimension that meets a bound is certain. Otherwise more points are drawn, and the least is taken.

Error of a point (Schwartz and Zippel). Let N be the parameters of the factors concerned. Some minor of the Jacobian
of at most N rows beyond the items' own is not zero as a polynomial with integer coefficients. With at most N items
of `base` parameters its size s is at most N(1 + base). The point is missed if the polynomial vanishes there, of
degree s and 2N·base more for the divisions; or if the prime divides all coefficients. These are at most
(base + width)^s, as a row has base + width entries, which so many primes beyond 2²⁸ cannot all divide.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.identify.generic import rigid
from elute.identify.generic.elimination_order import order_factors
from elute.identify.generic.equations import FactorModel, pose_equations
from elute.identify.generic.field import PRIMES, SMALLEST, draw_prime, draw_residues
from elute.identify.generic.nullspace import find_null_directions
from elute.identify.generic.supports import Codes, Ints, Supports
from elute.kernels.forest import connect_cells

ERROR = 1e-9
"""Points are drawn until the null dimension is too large with at most this probability."""


class Degrees(NamedTuple):
    """What is left to the factors."""

    part: Codes
    """By factor: the part it belongs to, by number."""
    null: Ints
    """By part: its null dimension."""
    together: NDArray[np.bool_]
    """By factor: whether it belongs to the largest set of its part that only the gauge moves."""
    error: float
    """Probability that some null dimension is too large."""


def find_components(supports: Supports, n: int) -> Codes:
    """The smallest factor of every factor's component, for `n` factors."""
    return connect_cells(supports.offsets, supports.factor, n)


def count_degrees(supports: Supports, model: FactorModel, n: int, rng: np.random.Generator) -> Degrees:
    """Degrees of freedom of `n` factors."""
    speaking = _keep_long_supports(*supports, model.base)
    copies = np.minimum(speaking.items, model.copies)
    order = order_factors(speaking.offsets, speaking.factor, copies, model.base, n)
    label = find_components(speaking, n)[order]
    starts = np.concatenate((np.flatnonzero(np.diff(label, prepend=-1)), [n]))
    sizes = np.diff(starts)
    part = np.empty(n, np.int32)
    part[order] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    asked = copies * (np.diff(speaking.offsets) - model.base)
    equations = np.bincount(part[speaking.factor[speaking.offsets[:-1]]], asked, len(sizes)).astype(np.int64)
    floor = np.maximum(np.minimum(sizes, model.base) * model.width, sizes * model.width - equations)
    null, together = sizes * model.width, np.ones(n, np.bool_)
    miss, error = 1.0, 0.0
    while (null > floor).any():
        p = draw_prime(rng)
        vectors = draw_residues(rng, (n, model.width), p)
        system = pose_equations(speaking, copies, order, model, vectors, p, rng)
        for number in np.flatnonzero(null > floor):
            begin, end = int(starts[number]), int(starts[number + 1])
            draws = draw_residues(rng, ((end - begin) * model.width,), p)
            found, direction = find_null_directions(system, begin, end, model.base, model.width, p, draws)
            if found < null[number]:
                null[number] = found
                together[order[begin:end]] = rigid.find_largest(direction, vectors[begin:end], model.base, p)
        miss *= _miss_probability(int(sizes[null > floor].sum()), model)
        error = miss if (null > floor).any() else 0.0
        if error <= ERROR:
            break
    return Degrees(part, null, together, error)


def _miss_probability(factors: int, model: FactorModel) -> float:
    """The probability that one point shows too small a rank."""
    n = factors * model.width
    size = n * (1 + model.base)
    primes = size * math.log2(model.base + model.width) / math.log2(SMALLEST)
    return float(min(1.0, (size + 2 * n * model.base) / SMALLEST + primes / PRIMES))


def _keep_long_supports(offsets: Ints, factor: Codes, items: Ints, base: int) -> Supports:
    """The supports of more than `base` factors: the others put no equation on factors."""
    lengths = np.diff(offsets)
    kept = lengths > base
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[kept])))
    return Supports(starts, factor[np.repeat(kept, lengths)], items[kept])

"""The equations that supports put on the directions of factors, at a random point modulo a prime.

pbm, in φ = log o:                φ_t = φ_s.
affine, with a = dα/α, b = dβ/α:  r a_t + b_t = r a_s + b_s; α and β drop out, so only r is drawn.
vector:D:                         <u, dv_t> = Σ c_ts <u, dv_s>, where v_t = Σ c_ts v_s over D factors s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elute.identify.generic.elimination_order import group_by_factor
from elute.identify.generic.field import Field, draw_residues, solve
from elute.identify.generic.nullspace import System
from elute.identify.generic.supports import Codes, Ints, Supports
from elute.kernels.jit import jit


class FactorModel(NamedTuple):
    """A click model as far as counting goes."""

    name: str
    base: int
    """Parameters of an item: so many factors it takes to read them off."""
    width: int
    """Parameters of a factor."""

    @property
    def gauge(self) -> int:
        """Freedom that no data can take."""
        return self.base * self.width

    @property
    def copies(self) -> int:
        """Items of one support that can matter: their u span all directions of a factor."""
        return self.width


def pose_equations(
    supports: Supports,
    copies: Ints,
    order: Ints,
    model: FactorModel,
    vectors: Field,
    p: np.uint64,
    rng: np.random.Generator,
) -> System:
    """The equations at `vectors` (by place in `order`) and randomly drawn items."""
    at = np.empty(len(order), np.int32)
    at[order] = np.arange(len(order), dtype=np.int32)
    place = at[supports.factor]
    support = np.repeat(np.arange(len(copies)), np.diff(supports.offsets))
    place = place[np.lexsort((place, support))]
    u = draw_residues(rng, (int(copies.sum()), model.width), p)
    coefficient = np.ones((len(place), model.base), np.uint32)
    if model.base == 1 and model.name in ("pbm", "affine"):
        u[:, -1] = 1
    else:
        _combine(supports.offsets, place, vectors, p, coefficient)
    starts, closing = _find_closing(supports.offsets, place, model.base, len(order))
    copy_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(copies)))
    return System(supports.offsets, place, coefficient, copy_offsets, u, starts, closing, support)


@jit
def _combine(offsets: Ints, place: Codes, vectors: Field, p: np.uint64, coefficient: Field) -> None:
    """Write every factor's vector in terms of the first ones of its support; zeros where these are dependent."""
    base = coefficient.shape[1]
    for support in range(offsets.shape[0] - 1):
        begin, end = offsets[support], offsets[support + 1]
        matrix = np.empty((base, base), np.uint64)
        right = np.empty((base, end - begin - base), np.uint64)
        for i in range(base):
            for s in range(base):
                matrix[i, s] = vectors[place[begin + s], i]
            for t in range(right.shape[1]):
                right[i, t] = vectors[place[begin + base + t], i]
        if not solve(matrix, right, p):
            right[:] = 0
        for t in range(right.shape[1]):
            for s in range(base):
                coefficient[begin + base + t, s] = right[s, t]


@jit
def _find_closing(offsets: Ints, place: Codes, base: int, n: int) -> tuple[Ints, Ints]:
    """By place, the cells that close an equation there: all but the first `base` of each support."""
    later = np.zeros(place.shape[0], np.bool_)
    for support in range(offsets.shape[0] - 1):
        later[offsets[support] + base : offsets[support + 1]] = True
    cells = np.flatnonzero(later)
    starts, inside = group_by_factor(np.arange(cells.shape[0] + 1), place[cells], n)
    return starts, cells[inside]

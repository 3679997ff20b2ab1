"""Links where a formula ties factors, to merge or to swap: usually none or one.

What a log leaves open under a formula has few dimensions, one for each comparison that is missing. A pair of factors
that become comparable closes one of them, unless what is closed already implies it. Sets of pairs of which none implies
another form a matroid, so the cheapest that closes all is found greedily. And it lies within the spanning tree of least
cost over classes: the dearest pair of a cycle is implied by the others, under the formula as without it. So the tree
is found as ever, and what it has too much is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

from elute.identify.effects.classes import link_alike, span_forest
from elute.identify.effects.design import EffectDesign, find_design
from elute.identify.effects.span import find_coordinates

Ints = NDArray[np.int64]

_KEYS = 3
"""Vectors, drawn from what is open, by whose ratios comparisons are told apart: 1 in 10¹⁸ are not."""

_SEED, _TIGHT, _ROUNDS, _DIGITS = 0, 1e-14, 20_000, 9


def keep_independent(pairs: NDArray[np.integer], root: NDArray[np.int32], factors: pa.Table) -> NDArray[np.bool_]:
    """Of pairs from the cheapest on, those that the ones before do not imply; all of them without a formula. `root`:
    the smallest factor of each one's component."""
    design = find_design(factors)
    if design is None:
        return np.ones(len(pairs), np.bool_)
    missing = span_forest(design, np.zeros_like(root)).rank - span_forest(design, root).rank
    kept = np.zeros(len(pairs), np.bool_)
    if not missing or not len(pairs):
        return kept
    links = link_alike(design, root)
    at, p = find_coordinates(design, links[:, 0], links[:, 1], missing)
    some, ends = np.unique(pairs, return_inverse=True)
    at = at[some]
    for number, (a, b) in enumerate(ends.reshape(-1, 2)):
        apart = (at[a] - at[b]) % p
        open_ways = np.flatnonzero(apart)
        if not len(open_ways):
            continue
        kept[number] = True
        way = int(open_ways[0])
        times = apart * pow(int(apart[way]), -1, p) % p
        at = np.delete((at - at[:, [way]] * times) % p, way, axis=1)
        if not at.shape[1]:
            break
    return kept


class Comparisons(NamedTuple):
    """By pair: the `number` of what it compares, and its `length`, 1 for the longest of that number. Where the ratio of
    one pair settles that of another, the latter being its square, they have one number and lengths ½ and 1."""

    number: Ints
    length: NDArray[np.float64]


def compare_pairs(pairs: NDArray[np.integer], root: NDArray[np.int32], factors: pa.Table) -> Comparisons:
    """What pairs of factors of different classes tell beyond what is known. `root`: the smallest factor of each one's
    class. Without a formula: which two classes they join."""
    design = find_design(factors)
    if design is None:
        number = np.unique(np.sort(root[pairs], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        return Comparisons(number, np.ones(len(pairs)))
    links = link_alike(design, root)
    at, p = find_coordinates(design, links[:, 0], links[:, 1], _KEYS)
    apart = (at[pairs[:, 0]] - at[pairs[:, 1]]) % p
    once, same = np.unique(apart, axis=0, return_inverse=True)
    inverse = np.array([pow(max(one, 1), -1, p) for one in once[:, 0].tolist()], np.int64)
    number = np.unique(once[:, 1:] * inverse[:, None] % p, axis=0, return_inverse=True)[1].reshape(-1)[same.reshape(-1)]
    along = draw_open(design, links)
    length = np.abs(along[pairs[:, 0]] - along[pairs[:, 1]])
    longest = np.zeros(int(number.max(initial=-1)) + 1)
    np.maximum.at(longest, number, length)
    if span_forest(design, np.zeros_like(root)).rank - span_forest(design, root).rank == 1:
        longest[:] = np.ptp(along)  # all pairs compare the same
    return Comparisons(number, np.round(length / longest[number], _DIGITS))


def draw_open(design: EffectDesign, links: NDArray[np.integer]) -> NDArray[np.float64]:
    """X·β by factor, of a β at random that is 0 on the differences of `links`."""
    x = design.matrix
    known = csr_array(x[links[:, 1]] - x[links[:, 0]])
    drawn = np.random.default_rng(_SEED).standard_normal(design.size)
    held = lsqr(known, known @ drawn, atol=_TIGHT, btol=_TIGHT, iter_lim=_ROUNDS)[0]
    return np.asarray(x @ (drawn - held))

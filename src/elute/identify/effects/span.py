"""What items tell of effects: the span of the differences X_a - X_b of factors that an item was shown under.

log o(s) - log o(t) is determined exactly where X_s - X_t lies in that span D (Theorem 1 of the identifiability paper
where every factor has an effect of its own). All differences within a component of the identifiability graph lie in it,
so a forest of the graph, one difference a factor, says as much as all cells.

Nothing is rounded: ranks are taken modulo random primes, as for generic identifiability. And nothing as large as D is
kept: a vector z drawn from all that have Dz = 0 answers for it. X_s·z = X_t·z if X_s - X_t is in the span, and
otherwise but by chance, of 1 in a prime. Two vectors, each modulo a prime of its own, leave 1 in 10¹⁶.

Rows with one entry, or two that cancel, only say that effects are equal: union–find. Then a forest over the levels of
the largest term leaves combinations of rows along its cycles, in which that term has no part; random ones of these,
a few more than there are effects left, have the rank of all but by chance. They are what is eliminated. Where that
leaves many effects, rows are eliminated as they are (`elimination`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.errors import EluteError
from elute.identify.effects.dense import reduce_rows, solve_rows
from elute.identify.effects.design import EffectDesign
from elute.identify.effects.elimination import eliminate
from elute.identify.effects.forest import Forest, combine_cycles, grow_forest, spread_values
from elute.identify.generic.field import Field, draw_prime
from elute.kernels.unionfind import find_roots, join_edges, singletons

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEW = 500
"""Effects, beyond those of the largest term and those that are plainly equal, up to which a forest goes first."""

_MORE = 4
"""Combinations of rows beyond as many as there are effects."""

_DRAWS, _ATTEMPTS = 2, 8
_PASSES = 100
_SEED = 0


class TooManyEffects(EluteError):
    """What a log determines of a formula would take too long to find."""


class Span(NamedTuple):
    """`free`: effects that may be set to anything, each of the others following; `z`: two vectors of what they may be,
    modulo `primes`."""

    rank: int
    free: Flags
    z: Ints
    primes: tuple[int, ...]

    def key_factors(self, design: EffectDesign) -> Ints:
        """By factor, two numbers: equal where the ratio of two factors is determined."""
        keys = [_multiply(design.residues(p), z, p) for z, p in zip(self.z, self.primes, strict=True)]
        return np.stack(keys, axis=1)

    def key_effects(self) -> Ints:
        """By effect, two numbers: equal where two effects are determined relative to each other, 0 where one is
        relative to its reference."""
        return self.z.T


def find_span(design: EffectDesign, left: NDArray[np.integer], right: NDArray[np.integer]) -> Span:
    """Of the differences between the factors `left` and `right`."""
    rng = np.random.default_rng(_SEED)
    found: list[tuple[int, Flags, Ints, int]] = []
    for _ in range(_ATTEMPTS):
        p = int(draw_prime(rng))
        rank, free, z = _draw_null(design, left, right, p, rng, 1)
        found.append((rank, free, z[0], p))
        best = max(rank for rank, *_ in found)
        chosen = [one for one in found if one[0] == best]
        if len(chosen) == _DRAWS:
            break
    primes = tuple(p for *_, p in chosen)
    return Span(best, chosen[0][1], np.stack([z for _, _, z, _ in chosen]), primes)


def find_coordinates(
    design: EffectDesign, left: NDArray[np.integer], right: NDArray[np.integer], count: int
) -> tuple[Ints, int]:
    """By factor, where it lies in the space of what these differences leave open, in as many dimensions: residues, and
    their prime."""
    rng = np.random.default_rng(_SEED)
    p = int(draw_prime(rng))
    z = _draw_null(design, left, right, p, rng, count)[2]
    rows = design.residues(p)
    return np.stack([_multiply(rows, one, p) for one in z], axis=1), p


def _draw_null(
    design: EffectDesign,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    p: int,
    rng: np.random.Generator,
    count: int,
) -> tuple[int, Flags, Ints]:
    """The rank of the differences, effects that are free, and vectors at random of those that all of them are 0 on."""
    x = design.residues(p)
    rows = _tidy(x[left] - x[right], p)
    group, rows = _contract(rows, design.main, p)
    size, main = design.size, design.main
    heads = np.flatnonzero(group[:size] == np.arange(size))
    inside = heads[(heads >= main.start) & (heads < main.stop)]
    rest = heads[(heads < main.start) | (heads >= main.stop)]
    z, free = np.zeros((count, size + 1), np.int64), np.zeros(size, np.bool_)
    if len(rest) > FEW:
        echelon = eliminate(csr_array(rows[:, heads]), p, rng)
        if echelon is None:
            raise TooManyEffects(
                f"`bias=` is '{design.formula}', of which {len(heads):,} effects remain to be told apart, more than "
                "can be; leave out the term with most values, or join it to another by ':'"
            )
        for one in z:
            one[heads] = echelon.draw(len(heads), rng, p)
        free[heads] = echelon.find_free(len(heads))
        return size - int(free.sum()), free, z[:, group[:size]]
    forest, others = _grow(rows, inside, size, p), csr_array(rows[:, rest])
    core, pivots = _reduce_cycles(forest, others, p, rng)
    for one in z:
        one[rest] = solve_rows(core, pivots, rng.integers(0, p, len(rest)), p)
        one[inside] = spread_values(forest, _multiply(others, one[rest], p), rng, p)
    free[rest[np.setdiff1d(np.arange(len(rest)), pivots)]] = True
    free[inside[forest.is_root[:-1]]] = True
    return size - int(free.sum()), free, z[:, group[:size]]


def _multiply(rows: csr_array, values: Ints, p: int) -> Ints:
    """Modulo `p`, each product by itself: their sum may be long."""
    terms = csr_array((rows.data * values[rows.indices] % p, rows.indices, rows.indptr), shape=rows.shape)
    return np.asarray(np.asarray(terms.sum(axis=1)).ravel() % p, np.int64)


def _tidy(rows: csr_array, p: int) -> csr_array:
    rows.data %= p
    rows.eliminate_zeros()
    return csr_array(rows[np.flatnonzero(np.diff(rows.indptr))])


def _contract(rows: csr_array, main: slice, p: int) -> tuple[NDArray[np.int32], csr_array]:
    """Effects that rows make plainly equal, by the smallest of them, and the rows over these. The last place stands for
    0. Effects of the main term and others are not made one: the forest wants its own apart."""
    size = rows.shape[1]
    parent = singletons(size + 1)
    reverse = size - np.arange(size + 1)  # so that 0 is the smallest, and stands for all that equal it
    inside = np.zeros(size + 1, np.bool_)
    inside[main] = True
    for _ in range(_PASSES):
        entries = np.diff(rows.indptr)
        one = rows.indptr[:-1][entries == 1]
        two = rows.indptr[:-1][entries == 2]
        two = two[(rows.data[two] + rows.data[two + 1]) % p == 0]
        a, b = rows.indices[two].astype(np.int64), rows.indices[two + 1].astype(np.int64)
        same = inside[a] == inside[b]
        left = np.concatenate((rows.indices[one].astype(np.int64), a[same]))
        right = np.concatenate((np.full(len(one), size), b[same]))
        if not join_edges(parent, reverse[left], reverse[right]).any():
            break
        group = reverse[find_roots(parent)][reverse]
        onto = csr_array((np.ones(size + 1, np.int64), (np.arange(size + 1), group)))
        rows = _tidy(csr_array((rows @ onto[:size])[:, :size]), p)
    return reverse[find_roots(parent)][reverse].astype(np.int32), rows


def _grow(rows: csr_array, inside: Ints, size: int, p: int) -> Forest:
    """A forest over the levels of the main term that are left; the last node is their reference."""
    node = np.full(size, -1)
    node[inside] = np.arange(len(inside))
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    at = node[rows.indices]

    def find_ends(value: int) -> Ints:
        out = np.full(rows.shape[0], len(inside))
        chosen = (at >= 0) & (rows.data == value)
        out[row[chosen]] = at[chosen]
        return out

    return grow_forest(find_ends(1), find_ends(p - 1), len(inside) + 1)


def _reduce_cycles(forest: Forest, rest: csr_array, p: int, rng: np.random.Generator) -> tuple[Field, Ints]:
    """Echelon form of the rows along the forest's cycles, and its pivots."""
    columns = rest.shape[1]
    cycles = int(forest.closes.sum())
    if not columns or not cycles:
        return np.empty((0, columns), np.uint32), np.empty(0, np.int64)
    weights = rng.integers(0, p, (min(columns, cycles) + _MORE, cycles))
    core = combine_cycles(
        forest, weights, rest.indptr.astype(np.int64), rest.indices.astype(np.int64), rest.data, columns, p
    ).astype(np.uint32)
    return core, reduce_rows(core, p)

"""The directions in which factors can move while every cell probability stays as it is, modulo a prime.

One equation: item x with parameters u, shown under the `base` factors s that its parameters are read off from,
and under another factor t, asks <u, h_t> = Σ c_ts <u, h_s>, where h are the factors' directions. Items are gone:
this is the projection onto the complement of their columns, written with few non-zeros.

Factors are taken up one by one. Each keeps its h as a linear form in the parameters z that are still free: an
equation either determines a component of h, or is a relation among the z and removes one of them. Where factors
are well linked no more z are free than the model's gauge has, and then no further equation can matter: the cost
is that of reading the supports once. Where they are not, this is dense elimination in the free z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elute.identify.generic.field import MOST_PRODUCTS, Field, Sums, invert
from elute.identify.generic.supports import Codes, Ints
from elute.kernels.jit import jit

_COMPACT = 64
"""Removed z beyond which it may pay to drop their columns."""


class System(NamedTuple):
    """The equations at one random point. Factors go by their place in the elimination order."""

    offsets: Ints
    """By support: its cells, places rising; the first `base` are what its items are read off from."""
    place: Codes
    """By cell."""
    coefficient: Field
    """By cell and s: c_ts. A row of zeros among the first: the point is degenerate for this support."""
    copy_offsets: Ints
    """By support: its items, as many as can matter."""
    u: Field
    """By item and component of h."""
    starts: Ints
    """By place: the cells that close an equation there."""
    closing: Ints
    """Cells."""
    support: Ints
    """By cell."""


@jit
def find_null_directions(
    system: System, begin: int, end: int, base: int, width: int, p: np.uint64, draws: Field
) -> tuple[int, Field]:
    """Of the connected factors `begin` to `end`: the null dimension, and one random null direction by factor and
    component, made from `draws` (a residue for every parameter)."""
    size = end - begin
    h = np.zeros((size * width, 4 * width), np.uint32)
    relations, pivots = np.zeros((16, h.shape[1]), np.uint32), np.zeros(16, np.int64)
    columns, related = 0, 0
    for t in range(size):
        gauge = base * width if t >= base else -1
        if columns + width > h.shape[1]:
            h = _widen(h, 2 * h.shape[1])
            relations = _widen(relations, h.shape[1])
        solved = np.zeros((width, width + columns), np.uint64)
        found, at = np.zeros(width, np.int64), 0
        for closed in range(system.starts[begin + t], system.starts[begin + t + 1]):
            cell = system.closing[closed]
            support = system.support[cell]
            if system.coefficient[cell, 0] == 0:
                continue
            first = system.offsets[support]
            for copy in range(system.copy_offsets[support], system.copy_offsets[support + 1]):
                if at == width and columns - related == gauge:
                    break
                row = np.zeros(width + columns, np.uint64)
                row[:width] = system.u[copy]
                for s in range(base):
                    sign = p - np.uint64(system.coefficient[cell, s])
                    from_row = (system.place[first + s] - begin) * width
                    for a in range(width):
                        scale = np.uint32(sign * np.uint64(system.u[copy, a]) % p)
                        _add(row[width:], scale, h[from_row + a, :columns])
                    row %= p
                if _solve_component(solved, found, at, row, width, p):
                    at += 1
                elif columns - related > gauge:
                    if related == len(pivots):
                        relations, pivots = _lengthen(relations, pivots)
                    related += _relate(relations, pivots, related, row[width:], p)
        open_columns = columns
        for a in range(width):
            if not (found[:at] == a).any():
                h[t * width + a, open_columns] = 1
                for i in range(at):
                    h[t * width + found[i], open_columns] = (p - solved[i, a]) % p
                open_columns += 1
        for i in range(at):
            for column in range(columns):
                h[t * width + found[i], column] = (p - solved[i, width + column]) % p
        columns = open_columns
        if related > _COMPACT and 2 * related > columns:
            columns = _drop_columns(h, (t + 1) * width, relations, pivots, related, columns, p)
            related = 0
            relations[:] = 0
    z = draws[:columns].astype(np.uint64)
    return columns - related, _evaluate_direction(h, relations, pivots, related, z, p).reshape(size, width)


@jit
def _add(row: Sums, scale: np.uint32, other: Field) -> None:
    """row += scale·other, not reduced."""
    for column in range(other.shape[0]):
        row[column] += np.uint64(scale) * np.uint64(other[column])


@jit
def _solve_component(solved: Sums, found: Ints, at: int, row: Sums, width: int, p: np.uint64) -> bool:
    """Reduce `row` by the `at` components of h_t already solved for; True if it determines one more."""
    for i in range(at):
        if row[found[i]]:
            row[:] = (row + (p - row[found[i]]) * solved[i]) % p
    for a in range(width):
        if row[a]:
            solved[at] = row * invert(row[a], p) % p
            found[at] = a
            for i in range(at):
                if solved[i, a]:
                    solved[i] = (solved[i] + (p - solved[i, a]) * solved[at]) % p
            return True
    return False


@jit
def _reduce(row: Sums, relations: Field, pivots: Ints, related: int, p: np.uint64) -> None:
    """Rid `row` of the z that relations remove. A relation is free of the pivots before it."""
    added = 0
    for i in range(related):
        value = row[pivots[i]] % p
        row[pivots[i]] = 0
        if value:
            scale = np.uint32(p - value)
            _add(row[pivots[i] + 1 :], scale, relations[i, pivots[i] + 1 : row.shape[0]])
            _add(row[: pivots[i]], scale, relations[i, : pivots[i]])
            added += 1
            if added == MOST_PRODUCTS:
                row %= p
                added = 0
    row %= p


@jit
def _relate(relations: Field, pivots: Ints, related: int, row: Sums, p: np.uint64) -> int:
    """Add the relation `row`·z = 0 if it is new; returns how many were added."""
    _reduce(row, relations, pivots, related, p)
    for column in range(row.shape[0]):
        if row[column]:
            row[:] = row * invert(row[column], p) % p
            for other in range(row.shape[0]):
                relations[related, other] = row[other]
            pivots[related] = column
            return 1
    return 0


@jit
def _drop_columns(h: Field, rows: int, relations: Field, pivots: Ints, related: int, columns: int, p: np.uint64) -> int:
    """Substitute the removed z in the first `rows` of h and drop their columns; returns how many are left."""
    kept = np.ones(columns, np.bool_)
    kept[pivots[:related]] = False
    for r in range(rows):
        row = h[r, :columns].astype(np.uint64)
        _reduce(row, relations, pivots, related, p)
        h[r, :columns] = 0
        n = 0
        for column in range(columns):
            if kept[column]:
                h[r, n] = row[column]
                n += 1
    return columns - related


@jit
def _evaluate_direction(h: Field, relations: Field, pivots: Ints, related: int, z: Sums, p: np.uint64) -> Field:
    """h at given free z; the removed z follow from their relations, the last first."""
    columns = z.shape[0]
    z[pivots[:related]] = 0
    for i in range(related - 1, -1, -1):
        total = np.uint64(0)
        for column in range(columns):
            total = (total + np.uint64(relations[i, column]) * z[column]) % p
        z[pivots[i]] = (p - total) % p
    out = np.zeros(h.shape[0], np.uint32)
    for row in range(h.shape[0]):
        total = np.uint64(0)
        for column in range(columns):
            total = (total + np.uint64(h[row, column]) * z[column]) % p
        out[row] = total
    return out


@jit
def _widen(matrix: Field, width: int) -> Field:
    out = np.zeros((matrix.shape[0], width), np.uint32)
    out[:, : matrix.shape[1]] = matrix
    return out


@jit
def _lengthen(matrix: Field, pivots: Ints) -> tuple[Field, Ints]:
    rows, more = np.zeros((2 * matrix.shape[0], matrix.shape[1]), np.uint32), np.zeros(2 * len(pivots), np.int64)
    rows[: matrix.shape[0]] = matrix
    more[: len(pivots)] = pivots
    return rows, more

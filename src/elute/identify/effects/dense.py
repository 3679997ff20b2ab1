"""Elimination modulo a prime in dense rows: of what is left when nothing sparse is."""

from __future__ import annotations

import numpy as np

from elute.identify.generic.field import MOST_PRODUCTS, Field, Sums, invert
from elute.identify.generic.supports import Ints
from elute.kernels.jit import jit


@jit
def reduce_rows(rows: Field, p: int) -> Ints:
    """Bring rows into echelon form, in place: as many as the rank, each 1 at its pivot, which is its first entry, and
    0 at the pivots of those before it. Gives the pivots."""
    prime = np.uint64(p)
    pivots = np.empty(min(rows.shape[0], rows.shape[1]), np.int64)
    rank = 0
    for at in range(rows.shape[0]):
        row = rows[at].astype(np.uint64)
        _subtract(row, rows, pivots, rank, prime)
        for column in range(row.shape[0]):
            if row[column]:
                scale = invert(row[column], prime)
                for j in range(row.shape[0]):
                    rows[rank, j] = row[j] * scale % prime
                pivots[rank] = column
                rank += 1
                break
        if rank == rows.shape[1]:
            break
    return pivots[:rank].copy()


@jit
def _subtract(row: Sums, rows: Field, pivots: Ints, rank: int, p: np.uint64) -> None:
    """Rid a row of the pivots of the first rows."""
    added = 0
    for i in range(rank):
        first = pivots[i]
        value = row[first] % p
        if value == 0:
            row[first] = 0
            continue
        scale, other = p - value, rows[i]
        for column in range(first, row.shape[0]):
            row[column] += scale * np.uint64(other[column])
        added += 1
        if added == MOST_PRODUCTS:
            row %= p
            added = 0
    row %= p


@jit
def solve_rows(rows: Field, pivots: Ints, values: Ints, p: int) -> Ints:
    """`values` with those at pivots such that all rows are 0 on them."""
    for rank in range(pivots.shape[0] - 1, -1, -1):
        total = 0
        for j in range(pivots[rank] + 1, values.shape[0]):
            total = (total + np.int64(rows[rank, j]) * values[j]) % p
        values[pivots[rank]] = (p - total) % p
    return values

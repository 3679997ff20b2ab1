"""Arithmetic modulo a random prime: ranks without rounding and without a threshold.

Primes lie between 2²⁸ and 2²⁹, so that a sum of 64 products still fits 64 bits and few divisions are needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Field = NDArray[np.uint32]
"""Residues."""
Sums = NDArray[np.uint64]
"""Sums of residues and their products."""

BITS = 29
SMALLEST = 2 ** (BITS - 1)
PRIMES = 13_561_907
"""How many primes lie between 2²⁸ and 2²⁹."""
MOST_PRODUCTS = 62
"""Products that may be added to a residue before the sum must be reduced."""

_DIVISORS = np.arange(3, int((2 * SMALLEST) ** 0.5) + 2, 2)


def draw_prime(rng: np.random.Generator) -> np.uint64:
    """A prime between 2²⁸ and 2²⁹, all alike in probability."""
    while True:
        candidate = int(rng.integers(SMALLEST // 2, SMALLEST)) * 2 + 1
        if (candidate % _DIVISORS).all():
            return np.uint64(candidate)


def draw_residues(rng: np.random.Generator, shape: tuple[int, ...], p: np.uint64) -> Field:
    """Residues other than 0."""
    return rng.integers(1, int(p), shape, np.uint32)


@jit
def invert(value: np.uint64, p: np.uint64) -> np.uint64:
    """1/value by Fermat's little theorem."""
    result, power = np.uint64(1), value
    for bit in range(BITS):
        if (np.int64(p) - 2) >> bit & 1:
            result = result * power % p
        power = power * power % p
    return result


@jit
def solve(matrix: Sums, right: Sums, p: np.uint64) -> bool:
    """Turn `right` into matrix⁻¹·right by Gauss and Jordan's elimination; False if the matrix is singular.

    `matrix` is overwritten.
    """
    n = matrix.shape[0]
    for column in range(n):
        pivot = column
        while pivot < n and matrix[pivot, column] == 0:
            pivot += 1
        if pivot == n:
            return False
        for both in (matrix, right):
            for j in range(both.shape[1]):
                both[column, j], both[pivot, j] = both[pivot, j], both[column, j]
        factor = invert(matrix[column, column], p)
        for both in (matrix, right):
            both[column] = both[column] * factor % p
        for row in range(n):
            if row != column and matrix[row, column] != 0:
                factor = p - matrix[row, column]
                for both in (matrix, right):
                    both[row] = (both[row] + factor * both[column]) % p
    return True

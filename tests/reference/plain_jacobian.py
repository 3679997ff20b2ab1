"""Null dimensions by exact arithmetic: the whole Jacobian at a random rational point, nothing eliminated by hand.

Cells are (item, factor) pairs of small integers.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np

Cells = list[tuple[int, int]]


def rank(matrix: list[list[Fraction]]) -> int:
    """By Gaussian elimination over the rationals."""
    rows = [list(row) for row in matrix]
    done = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(done, len(rows)) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        for i in range(done + 1, len(rows)):
            if rows[i][column] != 0:
                factor = rows[i][column] / rows[done][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[done], strict=True)]
        done += 1
    return done


def jacobian(cells: Cells, model: str, seed: int) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """∂p/∂(item parameters) and ∂p/∂(factor parameters), a row for each distinct cell."""
    cells = sorted(set(cells))
    items, factors = sorted({x for x, _ in cells}), sorted({t for _, t in cells})
    rng = random.Random(seed)
    dimension = int(model.partition(":")[2] or 1)
    of_item, of_factor = dimension, 2 if model == "affine" else dimension

    def draw(n: int) -> list[Fraction]:
        return [Fraction(rng.randrange(1, 10**6)) for _ in range(n)]

    u, v = {x: draw(of_item) for x in items}, {t: draw(of_factor) for t in factors}
    by_items, by_factors = [], []
    for x, t in cells:
        left, right = [Fraction(0)] * (len(items) * of_item), [Fraction(0)] * (len(factors) * of_factor)
        at_x, at_t = items.index(x) * of_item, factors.index(t) * of_factor
        if model == "affine":
            left[at_x] = v[t][0]
            right[at_t : at_t + 2] = [u[x][0], Fraction(1)]
        else:
            left[at_x : at_x + dimension] = v[t]
            right[at_t : at_t + dimension] = u[x]
        by_items.append(left)
        by_factors.append(right)
    return by_items, by_factors


def null_dimensions(cells: Cells, model: str, seed: int = 0) -> tuple[int, int]:
    """Of the factors with items following along, and of items alone."""
    by_items, by_factors = jacobian(cells, model, seed)
    whole = [a + b for a, b in zip(by_items, by_factors, strict=True)]
    alone = len(by_items[0]) - rank(by_items)
    return len(whole[0]) - rank(whole) - alone, alone


def null_dimension_by_schur(cells: Cells, model: str, seed: int = 0) -> int:
    """Of the factors: floating point, projecting onto the complement of the items' columns, singular values."""
    by_items, by_factors = (np.array(part, float) for part in jacobian(cells, model, seed))
    by_items /= np.abs(by_items).max()
    by_factors /= np.abs(by_factors).max(axis=0)
    projected = by_factors - by_items @ np.linalg.lstsq(by_items, by_factors, rcond=None)[0]
    values = np.linalg.svd(projected, compute_uv=False)
    return by_factors.shape[1] - int((values > 1e-9).sum())


def affine_rank_by_counting(cells: Cells) -> int:
    """Of the affine Jacobian, by the count that governs lines through points: a set of cells is independent exactly
    if each part of it has at most (items + 2·factors - 2) cells. Cells are added one by one while that holds."""
    chosen: Cells = []
    for cell in sorted(set(cells)):
        if _sparse([*chosen, cell]):
            chosen.append(cell)
    return len(chosen)


def _sparse(cells: Cells) -> bool:
    for subset in range(1, 1 << len(cells)):
        part = [cell for i, cell in enumerate(cells) if subset >> i & 1]
        if len(part) > len({x for x, _ in part}) + 2 * len({t for _, t in part}) - 2:
            return False
    return True

"""Swaps under a formula by trying every set of them, with fractions: what each compares, and the cheapest that leave
nothing open."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from reference.plain_effects import Row, find_rank, reduce_rows, subtract


class PlainSwap(NamedTuple):
    """An item of a query, known under one factor, under another: what an impression tells and costs."""

    query: object
    source: int
    target: int
    strength: float
    price: float


class Compared(NamedTuple):
    """What a pair of factors tells beyond what is known: a direction, and how far along it."""

    direction: tuple[Fraction, ...]
    length: Fraction


def compare(known: Sequence[Row], a: Row, b: Row) -> Compared:
    """`known`: in reduced echelon form."""
    left = subtract(a, b)
    for one in known:
        lead = next(at for at, x in enumerate(one) if x)
        times = left[lead]
        left = [x - times * y for x, y in zip(left, one, strict=True)]
    scale = next((x for x in left if x), Fraction(1))
    return Compared(tuple(x / scale for x in left), abs(scale))


def choose_cheapest(rows: Sequence[Row], differences: Sequence[Row], swaps: Sequence[PlainSwap]) -> float | None:
    """The least sum of costs of swaps after which all rows are compared, None where no set does it. A swap costs its
    price times the square of how many times the longest comparison of its direction is longer; of the swaps of a query
    in a direction only the one counts that tells most, by the same measure."""
    known = reduce_rows(differences)
    whole = find_rank([subtract(row, rows[0]) for row in rows])
    missing = whole - len(known)
    found = [compare(known, rows[swap.source], rows[swap.target]) for swap in swaps]
    longest: dict[tuple[Fraction, ...], Fraction] = {}
    every = found
    if missing == 1:
        every = [compare(known, a, b) for a, b in combinations(rows, 2) if any(compare(known, a, b).direction)]
    for one in every:
        longest[one.direction] = max(longest.get(one.direction, Fraction(0)), one.length)
    best: dict[tuple[object, tuple[Fraction, ...]], tuple[float, float]] = {}
    for swap, one in zip(swaps, found, strict=True):
        weight = float(one.length / longest[one.direction]) ** 2
        tells = weight * swap.strength, swap.price / weight
        key = swap.query, one.direction
        best[key] = max(best.get(key, (0.0, 0.0)), tells)
    cost: dict[tuple[Fraction, ...], float] = {}
    for (_, direction), (_, price) in best.items():
        cost[direction] = min(cost.get(direction, float("inf")), price)
    sums = [
        sum(cost[direction] for direction in some)
        for some in combinations(cost, missing)
        if find_rank([*known, *map(list, some)]) == whole
    ]
    return min(sums, default=None)


def count_classes(rows: Sequence[Row], differences: Sequence[Row]) -> int:
    """Classes of factors whose ratios these differences determine."""
    known = reduce_rows(differences)
    kinds: list[Row] = []
    for row in rows:
        if all(any(compare(known, row, kind).direction) for kind in kinds):
            kinds.append(row)
    return len(kinds)

"""Swaps by trying everything: which are feasible, which is best, and what they can join. Written from the rules, with
dictionaries and loops."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Impressions(NamedTuple):
    """One row of a log, counted."""

    query: object
    item: int
    factor: int
    shown: int


def pages_by_place(rows: Iterable[Impressions]) -> dict[tuple[object, int], int]:
    out: defaultdict[tuple[object, int], int] = defaultdict(int)
    for row in rows:
        out[row.query, row.factor] += row.shown
    return out


def list_feasible(
    rows: list[Impressions],
    part: Callable[[int], int],
    kind: Callable[[int], object],
    pages: float,
    linking: bool,
) -> set[tuple[object, int, int, int]]:
    """(query, item, source, target): the item was shown at the source on pages of the query, which have the target as
    well, in the same kind, and at least one page may be changed."""
    places = pages_by_place(rows)
    found = set()
    for row in rows:
        for (query, target), traffic in places.items():
            if (
                query == row.query
                and target != row.factor
                and kind(target) == kind(row.factor)
                and math.floor(pages * traffic) >= 1
                and (not linking or part(target) != part(row.factor))
            ):
                found.add((query, row.item, row.factor, target))
    return found


def join(parts: Iterable[int], pairs: Iterable[tuple[int, int]]) -> int:
    """How many parts are left once these pairs are one."""
    group = {part: part for part in parts}
    for a, b in pairs:
        old, new = group[a], group[b]
        group = {part: new if held == old else held for part, held in group.items()}
    return len(set(group.values()))


def lose(
    rows: list[Impressions], x: int, query: object, target: int, r: Callable[[int], float], o: Callable[[int], float]
) -> float:
    """Expected clicks lost by one page of the query on which x stands at the target: the page as it was, less the page
    after the exchange, averaged over where x stood. One kind of page."""
    places = {factor: shown for (owner, factor), shown in pages_by_place(rows).items() if owner == query}
    pages = max(places.values())
    there = [row for row in rows if row.query == query and row.factor == target]
    worth = sum(r(row.item) * row.shown for row in there) / sum(row.shown for row in there)
    before, after, present = 0.0, 0.0, 0
    for row in rows:
        if row.query == query and row.item == x:
            before += row.shown / pages * (o(row.factor) * r(x) + o(target) * worth)
            after += row.shown / pages * (o(target) * r(x) + o(row.factor) * worth)
            present += row.shown
    rest = max(1 - present / pages, 0.0)
    before, after = before + rest * o(target) * worth, after + rest * o(target) * r(x)
    return max(0.0, before - after)

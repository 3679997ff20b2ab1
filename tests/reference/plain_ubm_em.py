"""UBM by EM with one pseudo-click and one pseudo-skip on everything, an impression after the other."""

from __future__ import annotations

from collections import defaultdict


def fit(pages: list[list[tuple[int, int]]], rounds: int) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """`pages`: (document, clicked) from the top. Attraction by document, examination by (rank, last click's rank),
    ranks from 1, 0 for no click."""
    seen = []
    for page in pages:
        last = 0
        for rank, (document, clicked) in enumerate(page, start=1):
            seen.append((document, (rank, last), clicked))
            last = rank if clicked else last
    attraction: dict[int, float] = defaultdict(lambda: 0.5)
    examination: dict[tuple[int, int], float] = defaultdict(lambda: 0.5)
    for _ in range(rounds):
        attracted: dict[int, list[float]] = defaultdict(lambda: [1.0, 2.0])
        examined: dict[tuple[int, int], list[float]] = defaultdict(lambda: [1.0, 2.0])
        for document, cell, clicked in seen:
            a, o = attraction[document], examination[cell]
            neither = 1.0 - a * o
            attracted[document][0] += 1.0 if clicked else a * (1.0 - o) / neither
            examined[cell][0] += 1.0 if clicked else o * (1.0 - a) / neither
            attracted[document][1] += 1.0
            examined[cell][1] += 1.0
        attraction = {key: some / all_ for key, (some, all_) in attracted.items()}
        examination = {key: some / all_ for key, (some, all_) in examined.items()}
    return attraction, examination

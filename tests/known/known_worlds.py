"""Small logs on every rung, for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

Row = tuple[object, object, int, int]
"""Query, document, position, click."""


def make_log(rows: Iterable[Row]) -> pa.Table:
    query, doc, position, click = zip(*rows, strict=True)
    return pa.table({"query_id": query, "doc_id": doc, "position": position, "click": click})


def list_pages(
    queries: int, pages: int, seed: int = 0, places: int = 5, relevance: tuple[float, float] = (0.1, 0.7)
) -> list[Row]:
    """Pages of documents in random order, seen as 1/k; document d of all has the d-th relevance."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    r = np.linspace(*relevance, places)
    for query in range(queries):
        for _ in range(pages):
            for at, doc in enumerate(rng.permutation(places)):
                rows.append((query, int(doc), at + 1, int(rng.random() < r[doc] / (at + 1))))
    return rows


def dense() -> pa.Table:
    """Every propensity known."""
    return make_log(list_pages(10, 300))


def sparse() -> pa.Table:
    """Linked and estimable, and little known."""
    return make_log(list_pages(60, 3, relevance=(0.1, 0.3)))


def dead_link() -> pa.Table:
    """Two pairs of positions joined by one item that was shown 1,000 times and never clicked."""
    rng = np.random.default_rng(0)
    rows: list[Row] = [
        (item, item, place, int(rng.random() < 0.5 / place))
        for item in range(40)
        for place in ((1, 2) if item < 20 else (3, 4))
        for _ in range(50)
    ]
    return make_log(rows + [(99, 99, place, 0) for place in (2, 3) for _ in range(500)])


def lone_positions(places: int = 15) -> pa.Table:
    """Each position with documents of its own."""
    rng = np.random.default_rng(0)
    return make_log(
        (query, f"{query}-{place}", place, int(rng.random() < 0.4 / place))
        for query in range(30)
        for place in range(1, places + 1)
    )


def stray_results() -> pa.Table:
    """A known log, and nine results that once stood far below."""
    return make_log(list_pages(10, 300) + [(1_000 + place, 0, place, 0) for place in range(41, 50)])


def seen_six_times() -> pa.Table:
    """A known log, and a position with six impressions, all clicked."""
    return make_log(list_pages(10, 300) + [(0, doc % 5, 12, 1) for doc in range(6)])

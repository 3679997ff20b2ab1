"""What a folder of counts holds, and how one is recognised.

| file | what |
|---|---|
| `counts.json` | column roles, filters, sizes, the source's fingerprint; written last: without it there are no counts |
| `factors.parquet` | the bias columns, rows, impressions, clicks |
| `items.parquet` | the item columns, `elute_cells` (how many the item has) and `elute_query` (its query's number) |
| `cells.parquet` | factor, impressions and clicks, in the order of the items |
| `pairs.parquet` | query, item, impressions: where an item does not tell its query |
| `counts.unfinished` | only while they are written |
"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, TypeGuard

from elute.engines.source_state import State

FORMAT = 2
MARK = "counts.json"
BEGUN = "counts.unfinished"
"""Tells a folder that an interrupted count has left, which may be written over, from what is somebody's own."""
CELLS, QUERY = "elute_cells", "elute_query"


class AboutCounts(TypedDict):
    """What `counts.json` says."""

    format: int
    log: str
    source: list[State]
    roles: dict[str, str | list[str] | None]
    filters: dict[str, str | int | None]
    rows: int
    rows_filtered: int | None
    usable: int
    unshown: int
    nulls: dict[str, int]
    items: int
    cells: int
    queries: int | None
    collision_bound: float
    repeats_on_page: int
    busiest_query: str | float | None


def is_counts(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a folder of counts."""
    return isinstance(source, str | Path) and (Path(source) / MARK).is_file()

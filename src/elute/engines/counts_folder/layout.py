"""What a folder of counts holds, and how one is recognised.

| file | what |
|---|---|
| `counts.json` | column roles, filters, sizes, the source's fingerprint, seals of the files; written last: without it
  there are no counts |
| `factors.parquet` | the bias columns, rows, impressions, clicks |
| `items.parquet` | the item columns, `elute_cells` (how many the item has) and `elute_query` (its query's number) |
| `cells.parquet` | factor, impressions and clicks, in the order of the items |
| `pairs.parquet` | query, item, impressions: where an item does not tell its query |
| `counts.unfinished` | only while they are written, or where that was interrupted: such a folder may be written over |
"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, TypeGuard

from elute.door.fields import each, flag, mapping, maybe, number, record, scalar, text, whole
from elute.door.seals import SEALS, Seals
from elute.engines.source_state import State, source_state

FORMAT = 2
MARK = "counts.json"
PARTS = "parts.json"
"""Of a folder of several counts, which are read as one (`elute.engines.parts`)."""
FILES = ("factors.parquet", "items.parquet", "cells.parquet", "pairs.parquet")
CELLS, QUERY = "elute_cells", "elute_query"
PLACE, ITEM, QUERY_KEY = "elute_place", "elute_item", "elute_query_key"
"""Hashes of ids, which only parts have."""


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
    exact: bool
    files: Seals


_NAME = maybe(text)
_NAMES = each(text, least=1, unique=True)

ROLES = record(
    {"item": _NAMES, "bias": _NAMES, **dict.fromkeys(("query", "click", "impressions", "session"), _NAME)},
    {"formula": text},
    closed=True,
)
"""What `Roles` are like in JSON."""

ABOUT = record(
    {
        "format": whole(),
        "log": text,
        "source": each(source_state),
        "roles": ROLES,
        **dict.fromkeys(("rows", "usable", "unshown", "repeats_on_page", "items", "cells"), whole()),
        "nulls": mapping(whole()),
        "queries": maybe(whole(most=2**31 - 1)),
        "collision_bound": number(0),
        "busiest_query": scalar,
    },
    {"filters": mapping(scalar), "rows_filtered": maybe(whole()), "exact": flag, "files": SEALS},
)
"""What `counts.json` must be like."""


def is_counts(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a folder of counts, or of parts."""
    return isinstance(source, str | Path) and any((Path(source) / mark).is_file() for mark in (MARK, PARTS))

"""ULTRA's text format: `.init_list` holds, a query a line, the documents in the order shown.

The format carries rankings and grades, no clicks: enough for a check. Positions count from 0, as in the
papers that use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

import pyarrow as pa

from elute.errors import EluteError

_PADDING = "-1"


def is_ultra(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a folder that holds rankings in this format."""
    return isinstance(source, str | Path) and any(Path(source).glob("*.init_list"))


def read(folder: str | Path) -> pa.Table:
    """Impressions as `query_id, doc_id, position`, one row for each shown document."""
    lists = sorted(Path(folder).glob("*.init_list"))
    if len(lists) > 1:
        raise EluteError(f"folder '{folder}' holds {len(lists)} .init_list files; pass a folder with one")
    queries: list[str] = []
    docs: list[str] = []
    positions: list[int] = []
    for number, line in enumerate(lists[0].read_text(encoding="utf-8").splitlines(), start=1):
        fields = line.split()
        if len(fields) < 2:
            raise EluteError(f"{lists[0]}, line {number}: expected a query and its documents, found {line!r}")
        shown = [(position, doc) for position, doc in enumerate(fields[1:]) if doc != _PADDING]
        queries += [fields[0]] * len(shown)
        docs += [doc for _, doc in shown]
        positions += [position for position, _ in shown]
    columns = {"query_id": queries, "doc_id": docs, "position": pa.array(positions, pa.int32())}
    return pa.table(columns)

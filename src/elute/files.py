"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_text(path: str | Path, text: str) -> None:
    """Write a text file."""
    with whole(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_parquet(path: str | Path, table: pa.Table) -> None:
    """Write a table."""
    with whole(Path(path)) as temporary:
        pq.write_table(table, temporary)


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A temporary name beside the target, renamed to it once everything is written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)

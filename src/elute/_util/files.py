"""Writing a file whole or not at all."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_text(path: str | Path, text: str) -> None:
    """Write a text file."""
    with write_atomically(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_parquet(path: str | Path, table: pa.Table) -> None:
    """Write a table."""
    with write_atomically(Path(path)) as temporary:
        pq.write_table(table, temporary)


def write_row_groups(path: str | Path, parts: Iterable[pa.Table]) -> None:
    """Write a table that comes in parts, each a row group."""
    with write_atomically(Path(path)) as temporary:
        writer = None
        try:
            for part in parts:
                writer = writer or pq.ParquetWriter(temporary, part.schema)
                writer.write_table(part, row_group_size=max(part.num_rows, 1))
        finally:
            if writer is not None:
                writer.close()


@contextmanager
def write_atomically(target: Path) -> Iterator[Path]:
    """A temporary name beside the target, renamed to it once everything is written.

    What processes that were killed have left under such names is removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        if not _is_running(left.name.split(".")[-2]):
            left.unlink(missing_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _is_running(process: str) -> bool:
    """Whether a process is there; what is no process's number counts as one."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError, ValueError):
        return True
    return True

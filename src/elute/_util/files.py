"""Text and tables, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.atomic import write_atomically


def write_text(path: str | Path, text: str) -> None:
    """Write a text file."""
    with write_atomically(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_parquet(path: str | Path, table: pa.Table) -> None:
    """Write a table."""
    with write_atomically(Path(path)) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True)


def write_row_groups(path: str | Path, parts: Iterable[pa.Table], repeated: Sequence[str] | None = None) -> None:
    """Write a table that comes in parts, each a row group. `repeated`: columns with few values, all where None; of
    others a dictionary would cost time and room."""
    with write_atomically(Path(path)) as temporary:
        writer = None
        try:
            for part in parts:
                if writer is None:
                    few = True if repeated is None else [name for name in repeated if name in part.column_names]
                    writer = pq.ParquetWriter(temporary, part.schema, use_dictionary=few, write_page_checksum=True)
                writer.write_table(part, row_group_size=max(part.num_rows, 1))
        finally:
            if writer is not None:
                writer.close()

"""The tables of a fit on disk, read again. Light to import: nothing is fitted here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elute.errors import EluteError


def read_part(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """A table of a fit's folder; it must have these columns."""
    try:
        table = pq.read_table(path)
    except (FileNotFoundError, pa.ArrowInvalid):
        raise EluteError(f"{path} is missing or no Parquet file; fit again with --out {path.parent}") from None
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise EluteError(f"{path} has no column '{missing[0]}'; fit again with --out {path.parent}")
    return table

"""A source in ranges of its rows that several threads read at once, each with a cursor of its own.

A query over one range costs some milliseconds to start, so there is one range for a thread. Ranges begin and end where
the source's own blocks of rows do. What has no such blocks, or files that differ in their columns, is one range: DuckDB
then reads on all cores by itself, and hands the rows to one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from elute.engines.duckdb.files import escape
from elute.engines.sql import quoting

ROWS_A_RANGE = 500_000
"""At least, unless it is the only one."""

_BLOCK = 122_880
"""Rows of a block of a DuckDB table."""

_ROW = "file_row_number"


class RowRange(NamedTuple):
    """`relation`: what to read in the place of the whole. `table`: what goes by that name, where it is in memory."""

    relation: str
    table: pa.Table | None = None


def split_table(name: str, table: pa.Table, ranges: int) -> list[RowRange]:
    """A table in memory."""
    return [
        RowRange(name, table.slice(begin, end - begin))
        for begin, end in _cut([0, *range(_BLOCK, table.num_rows, _BLOCK), table.num_rows], ranges)
    ]


def split_database_table(connection: duckdb.DuckDBPyConnection, relation: str, ranges: int) -> list[RowRange]:
    """A table of a database; a view has no numbers for its rows, and stays whole."""
    try:
        (most,) = connection.execute(f"SELECT max(rowid) FROM {relation}").fetchall()[0]
    except duckdb.Error:
        return [RowRange(relation)]
    rows = (most or 0) + 1
    return [
        RowRange(f"(SELECT * FROM {relation} WHERE rowid >= {begin} AND rowid < {end})")
        for begin, end in _cut([0, *range(_BLOCK, rows, _BLOCK), rows], ranges)
    ]


def split_files(files: Sequence[str], columns: Sequence[str], ranges: int) -> list[RowRange] | None:
    """Parquet files, by their row groups; None where they do not all have these columns, of the same types."""
    try:
        opened = [pq.read_metadata(file) for file in files]
        schemas = [one.schema.to_arrow_schema().remove_metadata() for one in opened]
    except (OSError, pa.ArrowException):
        return None  # DuckDB says what is wrong with it
    if any(schema != schemas[0] for schema in schemas) or set(schemas[0].names) != set(columns) or _ROW in columns:
        return None
    groups = [(file, number) for file, one in enumerate(opened) for number in range(one.num_row_groups)]
    sizes = [opened[file].row_group(number).num_rows for file, number in groups]
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    first = {file: ends[at] for at, (file, number) in reversed(list(enumerate(groups))) if number == 0}
    found = []
    for begin, end in _cut(ends, ranges):
        parts = []
        for file, at in first.items():
            low, high = max(begin - at, 0), min(end - at, opened[file].num_rows)
            if low < high:
                parts.append(_select_rows(files[file], low, high, opened[file].num_rows))
        found.append(RowRange(f"({' UNION ALL '.join(parts)})"))
    return found


def _select_rows(file: str, low: int, high: int, rows: int) -> str:
    named = f"{quoting.text(escape(file))}, hive_partitioning = false"
    if (low, high) == (0, rows):
        return f"SELECT * FROM read_parquet({named})"
    return (
        f"SELECT * EXCLUDE ({_ROW}) FROM read_parquet({named}, {_ROW} = true) WHERE {_ROW} >= {low} AND {_ROW} < {high}"
    )


def _cut(ends: Sequence[int], ranges: int) -> list[tuple[int, int]]:
    """About even ranges that begin and end at some of `ends`."""
    rows = ends[-1]
    ranges = max(1, min(ranges, rows // ROWS_A_RANGE))
    wanted = [rows * number // ranges for number in range(1, ranges)]
    cuts = sorted({0, rows, *(min(ends, key=lambda end: abs(end - cut)) for cut in wanted)})
    return list(pairwise(cuts)) or [(0, rows)]

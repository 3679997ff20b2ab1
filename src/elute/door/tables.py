"""Tables in Parquet files that elute wrote: columns by name, each of a type and in a range.

Pages carry checksums (`elute._util.files` has them written), which Arrow compares as it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from elute.door.fields import Damaged
from elute.errors import EluteError

_SIMPLE: tuple[Callable[[pa.DataType], bool], ...] = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_temporal),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_fixed_size_binary, pa.types.is_null),
)


class Integers(NamedTuple):
    """Whole numbers of one of these types, without nulls."""

    types: tuple[pa.DataType, ...] = (pa.int64(),)
    least: int = 0
    most: int | None = None

    def check(self, name: str, column: pa.ChunkedArray) -> None:
        _require_type(name, column, self.types)
        if not len(column):
            return
        low, high = _find_ends(column)
        if low < self.least:
            raise Damaged(f"column '{name}' has {low:,}, not {self.least:,} or more")
        if self.most is not None and high > self.most:
            raise Damaged(f"column '{name}' has {high:,}, not {self.most:,} or less")


class Real(NamedTuple):
    """Numbers with a point. `unknown`: they may be missing, as null or NaN. `infinite`: they may be infinite."""

    least: float = -math.inf
    unknown: bool = False
    infinite: bool = False

    def check(self, name: str, column: pa.ChunkedArray) -> None:
        if not pa.types.is_floating(column.type):
            raise Damaged(f"column '{name}' holds {column.type}, not numbers with a point")
        values = column.to_numpy().astype(np.float64, copy=False)
        missing = np.isnan(values)
        if missing.any() and not self.unknown:
            raise Damaged(f"column '{name}' is empty or NaN in {int(missing.sum()):,} rows")
        if not self.infinite and np.isinf(values).any():
            raise Damaged(f"column '{name}' has infinite values")
        if (values < self.least).any():
            raise Damaged(f"column '{name}' has {np.nanmin(values):g}, not {self.least:g} or more")


class Ids:
    """Ids: of any type that a log's may have, which lists and structs are not."""

    def check(self, name: str, column: pa.ChunkedArray) -> None:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not any(test(kind) for test in _SIMPLE):
            raise Damaged(f"column '{name}' holds {column.type}, which no id is")
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise Damaged(f"column '{name}' has text that is not UTF-8") from None


Column = Integers | Real | Ids
Columns = Mapping[str, Column]


def read_table(path: Path, columns: Columns, then: str) -> pa.Table:
    """A file; it must have these columns, each as it says. `then`: what to do where it is not so."""
    with refusing(path, then):
        table = open_parquet(path).read()
        check_columns(table, columns)
        return table


def open_parquet(path: Path) -> pq.ParquetFile:
    """A file whose pages are compared with their checksums as they are read."""
    return pq.ParquetFile(path, page_checksum_verification=True)


def check_columns(table: pa.Table, columns: Columns) -> None:
    """Raise `Damaged` where a column is missing, there twice, or not as it says."""
    require_columns(table.column_names, columns)
    for name, column in columns.items():
        column.check(name, table[name])


def require_columns(names: Sequence[str], wanted: Sequence[str] | Columns) -> None:
    """Raise `Damaged` where a column is missing, or there twice."""
    for name in wanted:
        if names.count(name) != 1:
            raise Damaged(f"it has {'no' if name not in names else 'more than one'} column '{name}'")


@contextmanager
def refusing(path: Path, then: str) -> Iterator[None]:
    """Whatever is wrong with a file, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise EluteError(f"{path} is missing; {then}") from None
    except Damaged as error:
        raise EluteError(f"{path} is not as elute wrote it: {error}; {then}") from None
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise EluteError(f"{path} is damaged, or not a Parquet file ({reason}); {then}") from None


def require_type(table: pa.Table, name: str, types: Sequence[pa.DataType]) -> None:
    """Raise `Damaged` where a column is of none of these types, or has nulls."""
    _require_type(name, table[name], types)


def _require_type(name: str, column: pa.ChunkedArray, types: Sequence[pa.DataType]) -> None:
    if column.type not in types:
        raise Damaged(f"column '{name}' holds {column.type}, not {types[0]}")
    if column.null_count:
        raise Damaged(f"column '{name}' is empty in {column.null_count:,} rows")


def _find_ends(column: pa.ChunkedArray) -> tuple[int, int]:
    found = pc.min_max(column).as_py()
    return int(found["min"]), int(found["max"])

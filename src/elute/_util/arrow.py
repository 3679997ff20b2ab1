"""Arrow columns as numpy arrays, without a copy: Arrow's own way imports pandas when first called, which takes long.
And rows of tables, on all cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from elute._util.threads import map_threads, split_evenly
from elute.errors import EluteError


def view(column: pa.Array, kind: DTypeLike) -> NDArray[Any]:
    """A column of numbers, of a log whose nulls are left out."""
    dtype = np.dtype(kind)
    if column.null_count:
        raise EluteError("the log changed while it was being read: nulls appeared; run again")
    if column.type.bit_width != 8 * dtype.itemsize:
        raise TypeError(f"{column.type} is not {dtype}")
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


def take_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """On all cores."""
    parts = split_evenly(len(rows), least=100_000)
    return pa.concat_tables(map_threads(lambda ends: table.take(pa.array(rows[slice(*ends)])), parts))

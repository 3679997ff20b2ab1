"""Arrow columns as numpy arrays, without a copy. Arrow's own way imports pandas when first called, which takes long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


def view(column: pa.Array, kind: DTypeLike) -> NDArray[Any]:
    """A column of numbers without nulls."""
    dtype = np.dtype(kind)
    if column.null_count or column.type.bit_width != 8 * dtype.itemsize:
        raise ValueError(f"{column.type} with {column.null_count} nulls is not {dtype}")
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)

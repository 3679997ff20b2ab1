"""Codes of factors in a scan: by place in a grid where bias columns are small integers, else by a hash of their values.

A grid spares DuckDB the hash and elute the search for it. Which factors there are the survey knows; a row with another
says that the log changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute._util.arrow import view
from elute.engines.counter import index_keys
from elute.engines.sql import quoting
from elute.kernels.jit import jit

MOST_PLACES = 1 << 20
"""Of a grid; 4 bytes each, to be looked up in the cache."""

Codes = NDArray[np.int32]


class FactorCodes(NamedTuple):
    """`sql`: what stands for a row's factor, one or several columns. `find`: from those to codes, -1 where there is
    none."""

    sql: tuple[str, ...]
    find: Callable[[Sequence[pa.Array]], Codes]


def by_key(sql: str, keys: NDArray[np.uint64]) -> FactorCodes:
    """Keys of factors in the order of their codes."""
    table = index_keys(keys)
    return FactorCodes((sql,), lambda columns: table.find(view(columns[0], np.uint64)))


def by_grid(factors: pa.Table) -> FactorCodes | None:
    """None where some column is no integer, or the grid would be large."""
    if not all(pa.types.is_integer(kind) for kind in factors.schema.types):
        return None
    axes = [_Axis(*pc.min_max(factors[column]).as_py().values()) for column in factors.column_names]
    places = math.prod(axis.high - axis.low + 1 for axis in axes)
    if places > MOST_PLACES:
        return None
    codes = np.full(places, -1, np.int32)
    columns = [factors[column].combine_chunks() for column in factors.column_names]
    codes[_find_places(axes, columns)] = np.arange(factors.num_rows, dtype=np.int32)
    names = tuple(quoting.name(column) for column in factors.column_names)
    return FactorCodes(names, lambda columns: _look_up(codes, _find_places(axes, columns)))


class _Axis(NamedTuple):
    """The least and the largest value of a column."""

    low: int
    high: int


def _find_places(axes: Sequence[_Axis], columns: Sequence[pa.Array]) -> NDArray[np.int32]:
    """In the grid; -1 outside."""
    out = np.zeros(len(columns[0]), np.int32)
    for axis, column in zip(axes, columns, strict=True):
        values = view(column, column.type.to_pandas_dtype())
        _add_axis(out, values, values.dtype.type(axis.low), values.dtype.type(axis.high), axis.high - axis.low + 1)
    return out


@jit
def _add_axis(
    places: NDArray[np.int32], values: NDArray[np.integer], low: np.integer, high: np.integer, span: int
) -> None:
    for i in range(places.shape[0]):
        if places[i] >= 0 and low <= values[i] <= high:
            places[i] = places[i] * span + np.int64(values[i] - low)
        else:
            places[i] = -1


@jit
def _look_up(codes: Codes, places: NDArray[np.int32]) -> Codes:
    for i in range(places.shape[0]):
        if places[i] >= 0:
            places[i] = codes[places[i]]
    return places

"""Factors by name: in words, and found again by the values of their columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_POSITION = re.compile(r"position|rank|^pos$|ordinal|slot", re.IGNORECASE)

_LISTED = 5


def describe(factor: Mapping[str, object]) -> str:
    """A factor in words: `position 3, device phone`."""
    return ", ".join(f"{column} {value}" for column, value in factor.items())


def describe_some(columns: Sequence[str], keys: Sequence[Sequence[object]]) -> str:
    """The first few of several factors in words."""
    words = [describe(dict(zip(columns, key, strict=True))) for key in keys[:_LISTED]]
    return "; ".join(words) + (f"; and {len(keys) - _LISTED:,} more" if len(keys) > _LISTED else "")


def is_position(factors: pa.Table, column: str) -> bool:
    """Whether a bias column counts places on a page, to judge by its name and type."""
    kind = factors[column].type
    return has_position_name(column) and (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def has_position_name(column: str) -> bool:
    """Whether a column is called as one that counts places on a page."""
    return bool(_POSITION.search(column))


def to_rows(table: pa.Table, codes: Iterable[int]) -> list[dict[str, Any]]:
    """Some rows of a table as dictionaries of values that JSON can hold."""
    taken = table.take(pa.array([int(code) for code in codes], pa.int64())).to_pylist()
    return [{column: to_json_value(value) for column, value in row.items()} for row in taken]


def index_rows(table: pa.Table) -> dict[str, int]:
    """Row numbers by `row_key` of the row."""
    return {row_key(row): number for number, row in enumerate(to_rows(table, range(table.num_rows)))}


def find_rows(table: pa.Table, wanted: Sequence[Mapping[str, object]]) -> NDArray[np.int64]:
    """Row numbers of a few rows among many; -1 where there is none. Only rows that share each value with one of those
    wanted are looked at as dictionaries."""
    mask = np.ones(table.num_rows, np.bool_)
    for column in table.column_names:
        mask &= _share_values(table[column], [row[column] for row in wanted])
    candidates = np.flatnonzero(mask)
    known = {row_key(row): int(code) for row, code in zip(to_rows(table, candidates), candidates, strict=True)}
    return np.array([known.get(row_key(row), -1) for row in wanted], np.int64)


def _share_values(column: pa.ChunkedArray, values: list[object]) -> NDArray[np.bool_]:
    """Where a column has one of these values; all of it where its type has no way back from JSON."""
    try:
        return np.asarray(pc.is_in(column, pa.array(values, column.type)).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return np.ones(len(column), np.bool_)


def row_key(row: Mapping[str, object]) -> str:
    """What two equal rows have in common, before and after a file."""
    return json.dumps(dict(row), sort_keys=True, ensure_ascii=False)


def to_json_value(value: object) -> str | float | None:
    """Numbers, text, true and false as they are; anything else, and numbers JSON cannot write, as text."""
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return value if isinstance(value, str | int | bool) or value is None else str(value)

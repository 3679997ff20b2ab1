"""Rows of one table found in another by their ids.

Ids are compared as text: a log may hold numbers where a file of labels holds strings. Every id column is coded by
itself and the codes are combined, so that no separator can make two ids one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.errors import EluteError

Rows = NDArray[np.int64]
Ids = Sequence[pa.Array]
"""One text column for each part of an id, equally long."""


def id_columns(table: pa.Table, columns: Sequence[str]) -> list[pa.Array]:
    """Some columns as text."""
    found = []
    for name in columns:
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            whole = column.cast(pa.string()).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise EluteError(
                f"column '{name}' holds {column.type}, which no id is; write ids as text or numbers"
            ) from None
        found.append(whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole)
    return found


def match(wanted: Ids, known: Ids) -> Rows:
    """For every wanted row its row in `known`, -1 where it is not there; of equal rows the first."""
    ours, theirs = np.zeros(len(wanted[0]), np.int64), np.zeros(len(known[0]), np.int64)
    absent = np.zeros(len(ours), np.bool_)
    for mine, their in zip(wanted, known, strict=True):
        values = pc.unique(their)
        at = pc.index_in(mine, value_set=values).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        absent |= at < 0
        code = pc.index_in(their, value_set=values).to_numpy(zero_copy_only=False).astype(np.int64)
        # Codes are made small again at every column, so that many columns do not overflow.
        pairs, theirs = np.unique(theirs * len(values) + code, return_inverse=True)
        ours = np.where(absent, -1, ours * len(values) + at)
        place = np.minimum(np.searchsorted(pairs, ours), max(len(pairs) - 1, 0))
        absent |= (pairs[place] != ours) if len(pairs) else True
        ours = np.where(absent, -1, place)
    _, first = np.unique(theirs, return_index=True)
    return np.where(absent, -1, first[ours] if len(first) else -1).astype(np.int64)


def refuse_repeats(columns: Ids, place: str) -> None:
    """Raise an error if two rows have the same ids."""
    again = np.flatnonzero(match(columns, columns) != np.arange(len(columns[0])))
    if len(again):
        example = describe_row(columns, int(again[0]))
        raise EluteError(f"{place}: {len(again):,} rows repeat an item, for instance {example}; keep one row each")


def select_rows(columns: Ids, rows: NDArray[np.integer]) -> list[pa.Array]:
    """Some rows' ids."""
    return [column.take(pa.array(rows)) for column in columns]


def describe_row(columns: Ids, row: int) -> str:
    """One row's ids, for a message."""
    return "·".join(str(column[row].as_py()) for column in columns)

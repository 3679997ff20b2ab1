"""Hashes of ids that are the same in all parts of a folder: SipHash under a key that the folder keeps.

An id is hashed by its value, not as some engine or file type has it: an integer of 32 bits as one of 64, text whatever
its offsets, a dictionary's value. Columns whose values would not be told to be the same have types that `alike` says
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from elute._util.threads import map_threads, split_evenly
from elute.cells.roles import Roles
from elute.engines.id_keys import IdHash, Keys
from elute.errors import EluteError

_NO_KEYS: Keys = np.empty(0, np.uint64)
_ROWS = 100_000
"""That are worth a thread."""


class HashedItems(NamedTuple):
    """By item of a part: its place, which does not hang on the folder's key, its hash and that of its query."""

    place: Keys
    item: Keys
    query: Keys


def hash_items(table: pa.Table, roles: Roles, hashed: IdHash) -> HashedItems:
    """`roles`: those of the folder. On all cores."""
    parts = split_evenly(table.num_rows, least=_ROWS)
    found = map_threads(lambda ends: _hash_items(table.slice(ends[0], ends[1] - ends[0]), roles, hashed), parts)
    return found[0] if len(found) == 1 else HashedItems(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _hash_items(table: pa.Table, roles: Roles, hashed: IdHash) -> HashedItems:
    plain = {column: to_plain(table[column]) for column in {*roles.item, roles.query} if column is not None}
    if roles.query is None:
        items = hashed.hash_ids([plain[column] for column in roles.item])
        return HashedItems(items.places, items.keys, _NO_KEYS)
    if roles.items_within_queries:
        inner = [plain[column] for column in roles.item if column != roles.query]
        items = hashed.hash_nested(plain[roles.query], inner, by_inner=True)
        return HashedItems(items.places, items.keys, items.outer)
    items = hashed.hash_ids([plain[column] for column in roles.item])
    return HashedItems(items.places, items.keys, hashed.hash_ids([plain[roles.query]]).keys)


def to_plain(column: pa.ChunkedArray) -> pa.Array:
    """A column's values as 64-bit numbers that stand for them one to one, or as text or bytes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_plain(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        values = column.cast(pa.float64()).to_numpy() + 0.0  # there is one zero
        values[np.isnan(values)] = np.nan
        return pa.array(values.view(np.uint64))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _combine(column.cast(pa.large_binary()))
    wide = _find_wide(kind)
    for step in (pa.large_string(),) if wide is None else wide:
        column = column.cast(step)
    return _combine(column)


def _find_wide(kind: pa.DataType) -> tuple[pa.DataType, ...] | None:
    """By which types a column becomes 64-bit numbers; None where it does not."""
    if pa.types.is_uint64(kind) or kind == pa.int64():
        return ()
    if pa.types.is_boolean(kind):
        return (pa.uint8(), pa.int64())
    if pa.types.is_integer(kind):
        return (pa.int64(),)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return (pa.int32(), pa.int64())
    if any(test(kind) for test in (pa.types.is_date64, pa.types.is_time64, pa.types.is_timestamp)):
        return (pa.int64(),)
    return None


def _combine(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def require_alike(schema: pa.Schema, known: pa.Schema, columns: Sequence[str], folder: object) -> None:
    """Refuse ids of a type whose values cannot be those of the other parts."""
    for column in columns:
        mine, theirs = schema.field(column).type, known.field(column).type
        if _name_kind(mine) != _name_kind(theirs):
            raise EluteError(
                f"column '{column}' holds {mine} here and {theirs} in the parts of '{folder}', so that no id would be "
                "the same; give it that type, or count into another folder"
            )


def _name_kind(kind: pa.DataType) -> str:
    """Equal for types of which a value has one hash."""
    if pa.types.is_dictionary(kind):
        return _name_kind(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_floating(kind):
        return "numbers with a point"
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return "whole numbers"
    return str(kind)

"""Ids on their way out of DuckDB: as 64-bit numbers that stand for their values one to one where a type has at most 64
bits, else as text or bytes. Kernels make keys of them (`elute.engines.id_keys`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from elute._util.arrow import view
from elute.cells.roles import Roles
from elute.engines.id_keys import IdHash, KeyRoom, Keys
from elute.engines.sql import quoting

_NUMBERS = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|DATE|TIME|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?"
    r"|DECIMAL\((\d|1[0-8]),.*"
)
"""Types of at most 64 bits: DuckDB's own hash of one value is then a permutation, which takes 0.0 and -0.0 for one."""

_AS_THEY_ARE = ("VARCHAR", "BLOB")


def id_sql(column: str, kind: str) -> str:
    """SQL for what leaves DuckDB of a column of this type."""
    if _NUMBERS.fullmatch(kind):
        return f"hash({quoting.name(column)})"
    return quoting.name(column) + ("" if kind in _AS_THEY_ARE else "::VARCHAR")


class RowIds(NamedTuple):
    """As in `RowBatch`."""

    item: Keys
    query: Keys | None
    places: Keys


class IdReader(Protocol):
    """`sql`: what is to be selected. `read`: from those columns to ids."""

    sql: list[str]

    def read(self, columns: Sequence[pa.Array]) -> RowIds: ...


class HashedIdReader:
    """Ids told apart by a key that is drawn for each run. Items within queries have their query in front, so that both
    are hashed at once."""

    def __init__(
        self, roles: Roles, types: Mapping[str, str], hashed: IdHash, by_item: bool, room: KeyRoom | None = None
    ) -> None:
        """`by_item`: places are those of items also where these lie within queries. `room`: what is read may lie
        there, until the same thread reads again."""
        self._roles, self._hash, self._by_item, self._room = roles, hashed, by_item, room
        columns = list(
            dict.fromkeys(((roles.query,) if roles.query and roles.items_within_queries else ()) + roles.item)
        )
        self._of_item = len(columns)
        if roles.query is not None and not roles.items_within_queries:
            columns.append(roles.query)
        self.sql = [id_sql(column, types[column]) for column in columns]

    def read(self, columns: Sequence[pa.Array]) -> RowIds:
        if self._roles.query is not None and self._roles.items_within_queries:
            within = self._hash.hash_nested(columns[0], columns[1:], self._by_item, self._room)
            return RowIds(within.keys, within.outer, within.places)
        item, own = self._hash.hash_ids(columns[: self._of_item]), columns[self._of_item :]
        return RowIds(item.keys, self._hash.hash_ids(own).keys if own else None, item.places)


class ExactIdReader:
    """Ids told apart by value: numbers that DuckDB gave them (`number_ids`)."""

    def __init__(self, roles: Roles, by_item: bool) -> None:
        self._queries = roles.query is not None
        within = roles.query is not None and roles.items_within_queries and not by_item
        by = (str(roles.query),) if within else roles.item
        numbers = ["elute_item_key", *(["elute_query_key"] if self._queries else [])]
        self.sql = [*numbers, f"hash({quoting.names(by)})"]

    def read(self, columns: Sequence[pa.Array]) -> RowIds:
        item, *query, places = (view(column, "uint64") for column in columns)
        return RowIds(item, query[0] if query else None, places)

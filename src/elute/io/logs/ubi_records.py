"""Records of OpenSearch UBI 1.x, from NDJSON or Parquet, as one relation whose columns are always the same.

What stacks write differs. Attributes of events may be nested (`event_attributes.object.object_id` as objects in
objects), flattened (a column or key of that dotted name), or, in Parquet, JSON in a text column. A document may be
wrapped in `_source`, as index dumps have it, and the action lines of bulk files may stand between documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute.engines.duckdb.files import escape
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.io.logs.rows import split
from elute.io.text.lines import read_chunks

COLUMNS = {
    "query_id": ("query_id",),
    "user_query": ("user_query",),
    "hits": ("query_response_hit_ids",),
    "action": ("action_name",),
    "object_id": ("event_attributes", "object", "object_id"),
    "ordinal": ("event_attributes", "position", "ordinal"),
}
"""Where a record has what is read."""

_PARQUET = b"PAR1"
_BULK = ("index", "create")


def is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == _PARQUET


def read_lines(con: duckdb.DuckDBPyConnection, path: Path, size: int) -> Iterator[tuple[str, int, int]]:
    """For each chunk of an NDJSON file: a relation, the lines before it, and its bytes.

    The relation has `row` (the line in the chunk, from 0), `valid`, `bulk`, `attributes` and the columns above.
    """
    before = 0
    for chunk in read_chunks(path, size):
        text = chunk.replace(b"\r\n", b"\n")
        values, at = split(text, b"\n")
        con.register("lines", pa.table({"row": np.arange(len(at)), "line": _decode_lines(values)}))
        yield _chunk_relation(con, text), before, len(chunk)
        before += len(at)
    con.unregister("lines")


def parquet_relation(path: Path) -> str:
    """The same relation over a Parquet file; `row` counts its rows from 0."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as problem:
        raise EluteError(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from problem
    fields = ", ".join(f"{_column_sql(schema, path_)} AS {quoting.name(name)}" for name, path_ in COLUMNS.items())
    event = f"{_column_sql(schema, COLUMNS['object_id'])} IS NOT NULL"
    return (
        f"(SELECT file_row_number AS row, true AS valid, false AS bulk, {event} AS attributes, {fields} "
        f"FROM read_parquet({quoting.text(escape(str(path)))}, hive_partitioning = false, file_row_number = true))"
    )


def _chunk_relation(con: duckdb.DuckDBPyConnection, text: bytes) -> str:
    """The relation over a chunk's lines: each is parsed once, and only for the shapes that the chunk has."""
    flat = b'"event_attributes.' in text
    wrapped = b'"_source"' in text
    actions = [action for action in _BULK if b'"%s"' % action.encode() in text]
    record = _record_structure(flat)
    structure = {**record, **({"_source": record} if wrapped else {}), **dict.fromkeys(actions, "JSON")}
    holders = ["record", "record._source"] if wrapped else ["record"]
    columns = {name: _coalesce_sql(holders, path, flat) for name, path in COLUMNS.items()}
    columns["valid"] = "record IS NOT NULL"
    columns["bulk"] = " OR ".join(["false", *(f"record.{quoting.name(action)} IS NOT NULL" for action in actions)])
    columns["attributes"] = " OR ".join(f"{holder}.event_attributes IS NOT NULL" for holder in holders)
    fields = ", ".join(f"({value}) AS {quoting.name(name)}" for name, value in columns.items())
    parsed = f"SELECT row, TRY(json_transform(line, {quoting.text(json.dumps(structure))})) AS record FROM lines"
    # A table of its own: a subquery would parse the line again for every field.
    con.execute(f"CREATE OR REPLACE TEMP TABLE parsed AS {parsed} WHERE line <> ''")
    return f"(SELECT row, {fields} FROM parsed)"


def _record_structure(flat: bool) -> dict[str, object]:
    """What json_transform is to take out of a record."""
    record: dict[str, object] = {path[0]: "VARCHAR" for path in COLUMNS.values()}
    record[COLUMNS["hits"][0]] = ["VARCHAR"]
    record["event_attributes"] = {"object": {"object_id": "VARCHAR"}, "position": {"ordinal": "VARCHAR"}}
    return record | {".".join(path): "VARCHAR" for path in COLUMNS.values() if flat and len(path) > 1}


def _coalesce_sql(holders: list[str], path: tuple[str, ...], flat: bool) -> str:
    ways = [".".join(map(quoting.name, path))]
    if flat and len(path) > 1:
        ways.append(quoting.name(".".join(path)))
    return f"coalesce({', '.join(f'{holder}.{way}' for holder in holders for way in ways)})"


def _column_sql(schema: pa.Schema, path: tuple[str, ...]) -> str:
    kind = "VARCHAR[]" if path == COLUMNS["hits"] else "VARCHAR"
    if ".".join(path) in schema.names:
        return f"TRY_CAST({quoting.name('.'.join(path))} AS {kind})"
    if path[0] not in schema.names:
        return f"NULL::{kind}"
    field, depth = schema.field(path[0]), 1
    while depth < len(path) and pa.types.is_struct(field.type) and field.type.get_field_index(path[depth]) >= 0:
        field, depth = field.type.field(path[depth]), depth + 1
    if depth == len(path):
        return f"TRY_CAST({'.'.join(map(quoting.name, path))} AS {kind})"
    if depth == 1 and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
        return f"json_extract_string({quoting.name(path[0])}, {quoting.text('$.' + '.'.join(path[1:]))})"
    return f"NULL::{kind}"


def _decode_lines(values: pa.StringArray) -> pa.Array:
    """Lines as text; one that is not UTF-8 becomes a broken one, and is reported as such."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([_decode_line(line) for line in values.cast(pa.binary()).to_pylist()])
    return values


def _decode_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return "not UTF-8"

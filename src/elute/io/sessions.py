"""Sessions for click models from Parquet: an impression a row, or a page a row with lists (the format of CLAX).

Ids become numbers through a `Vocabulary`, made from the training log. What it does not know, in a test log say, gets
its last number, which no session in training has: models take that for a typical document.
Importing this needs no jax; reading does, as `elute.clicks` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.clicks.sessions import Sessions

_ROWS = 1 << 20
APART = "\t"
"""What stands between query and document in a vocabulary."""


class SessionColumns(NamedTuple):
    """Names. An impression a row: all five. A page a row: `doc` and `click` are lists, `query` may be missing."""

    doc: str = "doc_id"
    click: str = "click"
    query: str = "query_id"
    session: str = "session_id"
    position: str = "position"


ROWS = SessionColumns()
LISTS = SessionColumns(doc="query_doc_ids", click="clicks")
"""Impressions as elute's other readers have them, and CLAX's session Parquet."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Numbers are places in these; the number after the last is what is not in them.

    `documents` are items: where rows are impressions, query and document joined by a tab.
    """

    documents: pa.Array
    queries: pa.Array

    @property
    def n_documents(self) -> int:
        """How many documents a model needs: these and the unknown one."""
        return len(self.documents) + 1

    @property
    def n_queries(self) -> int:
        return len(self.queries) + 1


class _FlatPages(NamedTuple):
    """Pages one after the other: ids by page and by impression, clicks, and where each page begins."""

    query: pa.DictionaryArray
    doc: pa.DictionaryArray
    click: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def read_sessions(
    path: Path | str, columns: SessionColumns = ROWS, vocabulary: Vocabulary | None = None
) -> tuple[Sessions, Vocabulary]:
    """All sessions of a file. Without a vocabulary, it is made from the file."""
    flat = _flatten(_read_table(path, columns), columns)
    if vocabulary is None:
        vocabulary = Vocabulary(flat.doc.dictionary, flat.query.dictionary)
    return _to_sessions(flat, vocabulary), vocabulary


def read_vocabulary(path: Path | str, columns: SessionColumns = ROWS) -> Vocabulary:
    """That of a file too large to be read at once."""
    documents: list[pa.Array] = []
    queries: list[pa.Array] = []
    for table in _read_parts(path, columns):
        flat = _flatten(table, columns)
        documents = [pa.concat_arrays([*documents, flat.doc.dictionary]).unique()]
        queries = [pa.concat_arrays([*queries, flat.query.dictionary]).unique()]
    if not documents:
        raise EluteError(f"{path} has no rows")
    return Vocabulary(documents[0], queries[0])


@dataclass(frozen=True)
class SessionParts:
    """The sessions of a file in parts, read anew each time they are iterated; for logs larger than memory.

    Where rows are impressions, those of a session must stand together.
    """

    path: Path | str
    vocabulary: Vocabulary
    columns: SessionColumns = ROWS

    def __iter__(self) -> Iterator[Sessions]:
        for table in _read_parts(self.path, self.columns):
            yield _to_sessions(_flatten(table, self.columns), self.vocabulary)


def _open(path: Path | str, columns: SessionColumns) -> tuple[pq.ParquetFile, list[str]]:
    """The file, and the columns to read."""
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as problem:
        raise EluteError(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from problem
    names = set(file.schema_arrow.names)
    lists = columns.doc in names and pa.types.is_list(file.schema_arrow.field(columns.doc).type)
    needed = [columns.doc, columns.click] if lists else list(columns)
    missing = [name for name in needed if name not in names]
    if missing:
        raise EluteError(f"{path} has no column '{missing[0]}'; it has: {', '.join(file.schema_arrow.names)}")
    return file, [*needed, columns.query] if lists and columns.query in names else needed


def _read_table(path: Path | str, columns: SessionColumns) -> pa.Table:
    file, needed = _open(path, columns)
    with file:
        return file.read(columns=list(dict.fromkeys(needed)))


def _read_parts(path: Path | str, columns: SessionColumns) -> Iterator[pa.Table]:
    """Some rows after the other; rows of the last session of a part wait for the next."""
    file, needed = _open(path, columns)
    lists = columns.session not in needed
    rest: pa.Table | None = None
    with file:
        for batch in file.iter_batches(batch_size=_ROWS, columns=list(dict.fromkeys(needed))):
            table = pa.Table.from_batches([batch])
            if lists:
                yield table
                continue
            table = table if rest is None else pa.concat_tables([rest, table])
            session = table[columns.session].combine_chunks().dictionary_encode().indices.to_numpy()
            end = int(np.flatnonzero(np.diff(session))[-1]) + 1 if (session != session[0]).any() else 0
            rest = table.slice(end)
            if end:
                yield table.slice(0, end)
    if rest is not None and rest.num_rows:
        yield rest


def _flatten(table: pa.Table, columns: SessionColumns) -> _FlatPages:
    if pa.types.is_list(table.schema.field(columns.doc).type):
        return _flatten_lists(table, columns)
    return _flatten_rows(table, columns)


def _flatten_lists(table: pa.Table, columns: SessionColumns) -> _FlatPages:
    docs, clicks = (_to_array(table[name]) for name in (columns.doc, columns.click))
    offsets = docs.offsets.to_numpy().astype(np.int64)
    theirs = clicks.offsets.to_numpy().astype(np.int64)
    if not np.array_equal(np.diff(offsets), np.diff(theirs)):
        page = int(np.flatnonzero(np.diff(offsets) != np.diff(theirs))[0])
        raise EluteError(
            f"row {page} does not have as many '{columns.click}' as '{columns.doc}'; give one for each document"
        )
    if columns.query in table.column_names:
        query = _to_array(table[columns.query]).dictionary_encode()
    else:
        query = pa.array(np.zeros(len(docs), np.int64)).dictionary_encode()
    return _FlatPages(query, docs.flatten().dictionary_encode(), _to_clicks(clicks.flatten()), offsets - offsets[0])


def _flatten_rows(table: pa.Table, columns: SessionColumns) -> _FlatPages:
    position = table[columns.position].to_numpy().astype(np.int64)
    session = _to_array(table[columns.session]).dictionary_encode().indices.to_numpy()
    if (np.diff(session) < 0).any() or (np.diff(position)[np.diff(session) == 0] < 0).any():
        order = np.lexsort((position, session))
        table, position, session = table.take(order), position[order], session[order]
    begins = np.flatnonzero(np.diff(session, prepend=-1))
    offsets = np.append(begins, len(session)).astype(np.int64)
    rank = np.arange(len(session)) - np.repeat(begins, np.diff(offsets))
    if not np.array_equal(position, rank + 1):
        row = int(np.flatnonzero(position != rank + 1)[0])
        raise EluteError(
            f"a session has position {position[row]} where {rank[row] + 1} is expected; "
            "positions must count from 1 without gaps"
        )
    query, doc = (_to_array(table[name].cast(pa.string())).dictionary_encode() for name in (columns.query, columns.doc))
    pair = query.indices.to_numpy().astype(np.int64) * len(doc.dictionary) + doc.indices.to_numpy()
    pairs, item = np.unique(pair, return_inverse=True)
    first, second = np.divmod(pairs, max(len(doc.dictionary), 1))
    names = pc.binary_join_element_wise(query.dictionary.take(first), doc.dictionary.take(second), APART)
    items = pa.DictionaryArray.from_arrays(pa.array(item.astype(np.int32)), names)
    return _FlatPages(query.take(pa.array(begins)), items, _to_clicks(_to_array(table[columns.click])), offsets)


def _to_array(column: pa.ChunkedArray) -> pa.Array:
    """One array, without nulls."""
    if column.null_count:
        raise EluteError(f"{column.null_count:,} rows of the sessions have an empty value; drop or fill them first")
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _to_clicks(values: pa.Array) -> NDArray[np.uint8]:
    kind = values.type
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise EluteError(f"clicks of sessions are {kind}; write 0 and 1")
    clicks = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    wrong = clicks[(clicks != 0) & (clicks != 1)]
    if len(wrong):
        raise EluteError(f"{len(wrong):,} clicks of sessions are neither 0 nor 1, for instance {wrong[0]:g}")
    return np.asarray(clicks, np.uint8)


def _look_up_ids(ids: pa.DictionaryArray, names: pa.Array) -> NDArray[np.int32]:
    """Places in `names`; their number for what is not there."""
    if ids.dictionary.equals(names):
        return np.asarray(ids.indices.to_numpy(), np.int32)
    if ids.dictionary.type != names.type:
        raise EluteError(f"ids are {ids.dictionary.type} here and {names.type} in the vocabulary; use one type")
    places = pc.index_in(ids.dictionary, value_set=names).fill_null(len(names)).to_numpy()
    return np.asarray(places[ids.indices.to_numpy()], np.int32)


def _to_sessions(flat: _FlatPages, vocabulary: Vocabulary) -> Sessions:
    from elute.clicks.sessions import Sessions

    length = np.diff(flat.offsets).astype(np.int32)
    shape = (len(length), int(length.max(initial=1)))
    doc, click = np.zeros(shape, np.int32), np.zeros(shape, np.uint8)
    shown = np.arange(shape[1]) < length[:, None]
    doc[shown], click[shown] = _look_up_ids(flat.doc, vocabulary.documents), flat.click
    return Sessions(_look_up_ids(flat.query, vocabulary.queries), doc, click, length)

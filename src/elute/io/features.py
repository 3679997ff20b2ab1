"""Features of documents: a Parquet table keyed by query and document, or ranking data in LETOR's or ULTRA's format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute._util.storage import MEMORY, Storage
from elute._util.urls import hide_secrets
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.io.ranking import read_ranking
from elute.ranking.data import RankingData

GRADE = "grade"
"""The column of judgements; never a feature."""

_PARQUET = (".parquet", ".pq")

_NUMBERS = 1 << 22
"""Numbers converted at a time."""


@dataclass(frozen=True, eq=False)
class Features:
    """Documents in rows, each once."""

    key: pa.Table
    """What names a document: the query and document columns, or the latter alone."""
    names: tuple[str, ...]
    values: NDArray[np.float32]
    """(documents, features), all finite."""
    label: str
    grades: NDArray[np.int32] | None = None


def is_parquet(source: Sequence[str]) -> bool:
    """Whether these are Parquet files, which can be read piece by piece."""
    return all(path.lower().endswith(_PARQUET) for path in source)


def read_features(
    source: Sequence[str], key: tuple[str, ...], names: tuple[str, ...] | None = None, storage: Storage = MEMORY
) -> Features:
    """Features from Parquet files with the columns `key`, or from LETOR files or an ULTRA folder.

    The last of `key` names the document; the others may be missing where documents have the same features for every
    query. `names`: the features to read, in this order, for a ranker that knows them; by default every column that is
    neither in `key` nor `grade`. Features of LETOR files are feature_1, feature_2, … `storage`: where those of Parquet
    files go.
    """
    label = hide_secrets(source[0]) if len(source) == 1 else f"{hide_secrets(source[0])} and {len(source) - 1} more"
    if not is_parquet(source):
        return _from_ranking(read_ranking(list(source)), key, names, label)
    opened = DuckDBSource(list(source))
    try:
        return _from_parquet(opened, key, names, storage, label)
    finally:
        opened.close()


def feature_bytes(source: Sequence[str], key: tuple[str, ...]) -> int:
    """Bytes that the features of Parquet files take, from what the files say of themselves."""
    opened = DuckDBSource(list(source))
    try:
        with opened.translate_errors():
            rows: int = opened.connection.execute(f"SELECT count(*) FROM {opened.relation}").fetchall()[0][0]
        return 4 * rows * sum(column not in (*key, GRADE) for column in opened.types)
    finally:
        opened.close()


def read_judged(source: Sequence[str], key: tuple[str, ...], names: tuple[str, ...]) -> RankingData:
    """Documents with grades and these features, for validation; Parquet needs the column `grade`."""
    features = read_features(source, key, names)
    if features.grades is None or features.key.num_columns < 2:
        lacks = GRADE if features.grades is None else key[0]
        raise EluteError(f"{features.label} has no column '{lacks}'; validation needs {', '.join((*key, GRADE))}")
    query = features.key[key[0]].combine_chunks().dictionary_encode()
    codes = query.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(codes)))).astype(np.int64)
    ids = zip(key, (query.dictionary, features.key[1]), strict=True)
    queries, documents = (_to_text(column, name, features.label) for name, column in ids)
    return RankingData(features.values[order], features.grades[order], offsets, queries, documents[order])


def _to_text(column: pa.Array | pa.ChunkedArray, name: str, label: str) -> NDArray[np.str_]:
    try:
        return np.asarray(column.cast(pa.string()).to_numpy(zero_copy_only=False).astype(np.str_))
    except pa.ArrowInvalid:
        raise EluteError(
            f"{label}: column '{name}' holds bytes that are no text; give ids as text or numbers"
        ) from None


def _from_ranking(data: RankingData, key: tuple[str, ...], names: tuple[str, ...] | None, label: str) -> Features:
    """LETOR writes no zeros, so that the last features of a small file may be missing: they are 0."""
    width = data.features.shape[1]
    own = tuple(f"feature_{number + 1}" for number in range(max(width, len(names or ()))))
    if names is not None and own != names:
        raise EluteError(f"{label} has {width} numbered features, but the ranker has {len(names)}: {_list_some(names)}")
    values = np.pad(data.features, ((0, 0), (0, len(own) - width))) if len(own) > width else data.features
    ids = (data.queries[data.query_of], data.documents)
    columns = {name: pa.array(column) for name, column in zip(key[-2:], ids[-len(key) :], strict=True)}
    features = Features(pa.table(columns), own, values, label, data.grades)
    gaps = _Gaps(len(own))
    gaps.add(values)
    gaps.refuse(features)
    return features


def _from_parquet(
    opened: DuckDBSource, key: tuple[str, ...], names: tuple[str, ...] | None, storage: Storage, label: str
) -> Features:
    """One pass over the files, some rows at a time."""
    there = list(opened.types)
    used = [column for column in key if column in there]
    if key[-1] not in used:
        raise EluteError(f"{label} has no column '{key[-1]}' to identify documents by; it has {_list_some(there)}")
    found = tuple(column for column in there if column not in (*key, GRADE)) if names is None else names
    with opened.translate_errors():
        n_rows: int = opened.connection.execute(f"SELECT count(*) FROM {opened.relation}").fetchall()[0][0]
    absent = [name for name in found if name not in there]
    if absent or not found or not n_rows:
        lacks = f"the features {_list_some(absent)}" if absent else "features" if not found else "documents"
        raise EluteError(f"{label} lacks {lacks}; it has {_list_some(there)}")
    wanted = [*dict.fromkeys((*used, *found)), *((GRADE,) if GRADE in there else ())]
    values = storage.new_array("features", (n_rows, len(found)), np.float32)
    gaps, grades = _Gaps(len(found)), []

    def keys(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """What names the documents; their features go into `values` on the way."""
        start = 0
        for batch in reader:
            part = values[start : start + len(batch)]
            for number, name in enumerate(found):
                with np.errstate(over="ignore"):
                    part[:, number] = batch[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
            gaps.add(part)
            if GRADE in there:
                grades.append(_read_grades(batch[GRADE], label))
            start += len(batch)
            yield batch.select(used)

    with opened.translate_errors():
        rows = opened.connection.sql(f"SELECT {quoting.names(wanted)} FROM {opened.relation}")
        reader = rows.to_arrow_reader(max(_NUMBERS // len(found), 1))
        _check_types(reader.schema, found, label)
        table = storage.write_table("keys", pa.schema([reader.schema.field(column) for column in used]), keys(reader))
    features = Features(table, found, values, label, np.concatenate(grades) if grades else None)
    gaps.refuse(features)
    _check_keys(features)
    return features


def _check_types(schema: pa.Schema, names: tuple[str, ...], label: str) -> None:
    text = [name for name in names if not _is_number(schema.field(name).type)]
    if text:
        raise EluteError(
            f"{label}: {_list_some(text)} are not numbers; leave these columns out, or write them as numbers"
        )


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


class _Gaps:
    """How many documents lack a number, and how often each feature does."""

    def __init__(self, n_features: int) -> None:
        self._documents = 0
        self._by_feature = np.zeros(n_features, np.int64)

    def add(self, values: NDArray[np.float32]) -> None:
        """Look at some documents."""
        if not np.isfinite(values).all():
            bad = ~np.isfinite(values)
            self._documents += int(bad.any(axis=1).sum())
            self._by_feature += bad.sum(axis=0)

    def refuse(self, features: Features) -> None:
        """Name the worst feature of those that have gaps, if any has."""
        if self._documents:
            worst = int(self._by_feature.argmax())
            raise EluteError(
                f"{features.label}: {self._documents:,} documents have features that are empty, NaN or infinite "
                f"('{features.names[worst]}' in {self._by_feature[worst]:,}); fill them in, or leave the documents out"
            )


def _check_keys(features: Features) -> None:
    """A document without a name, or two of the same name."""
    columns, key = features.key.column_names, features.key
    for column in columns:
        if key[column].null_count:
            raise EluteError(f"{features.label}: '{column}' is null in {key[column].null_count:,} rows; fill them in")
    counted = DuckDBSource(key)
    try:
        by = quoting.names(columns)
        twice = f"SELECT {by}, count(*) OVER () FROM (SELECT {by} FROM {counted.relation} GROUP BY ALL"
        found = counted.connection.execute(f"{twice} HAVING count(*) > 1) ORDER BY ALL LIMIT 1").fetchall()
    finally:
        counted.close()
    if found:
        first = ", ".join(f"{column} {value}" for column, value in zip(columns, found[0], strict=False))
        raise EluteError(f"{features.label} has {found[0][-1]:,} documents more than once ({first}); keep one row each")


def _read_grades(column: pa.Array, label: str) -> NDArray[np.int32]:
    if column.null_count or not pa.types.is_integer(column.type) or pc.min(column).as_py() < 0:
        raise EluteError(f"{label}: '{GRADE}' must be a whole number from 0 in every row")
    return np.asarray(column.to_numpy(), np.int32)


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")

"""Features of documents: a Parquet table keyed by query and document, or ranking data in LETOR's or ULTRA's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.engines.sources import Source
from elute.errors import EluteError
from elute.io.ranking import read_ranking
from elute.ranking import RankingData

GRADE = "grade"
"""The column of judgements; never a feature."""

_PARQUET = (".parquet", ".pq")


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


def read_features(source: Sequence[str], key: tuple[str, ...], names: tuple[str, ...] | None = None) -> Features:
    """Features from Parquet files with the columns `key`, or from LETOR files or an ULTRA folder.

    The last of `key` names the document; the others may be missing where documents have the same features for every
    query. `names`: the features to read, in this order, for a ranker that knows them; by default every column that is
    neither in `key` nor `grade`. Features of LETOR files are feature_1, feature_2, …
    """
    label = source[0] if len(source) == 1 else f"{source[0]} and {len(source) - 1} more"
    if not all(path.lower().endswith(_PARQUET) for path in source):
        return _from_ranking(read_ranking(list(source)), key, names, label)
    table = Source(list(source)).table()
    used = [column for column in key if column in table.column_names]
    if key[-1] not in used:
        raise EluteError(f"{label} has no column '{key[-1]}' to tell documents by; it has {_some(table.column_names)}")
    found = tuple(column for column in table.column_names if column not in (*key, GRADE)) if names is None else names
    grades = _grades(table[GRADE], label) if GRADE in table.column_names else None
    features = Features(table.select(used), found, _numbers(table, found, label), label, grades)
    _check_keys(features)
    return features


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
    ids = (column.cast(pa.string()).to_numpy(zero_copy_only=False) for column in (query.dictionary, features.key[1]))
    queries, documents = (column.astype(np.str_) for column in ids)
    return RankingData(features.values[order], features.grades[order], offsets, queries, documents[order])


def _from_ranking(data: RankingData, key: tuple[str, ...], names: tuple[str, ...] | None, label: str) -> Features:
    """LETOR writes no zeros, so that the last features of a small file may be missing: they are 0."""
    width = data.features.shape[1]
    own = tuple(f"feature_{number + 1}" for number in range(max(width, len(names or ()))))
    if names is not None and own != names:
        raise EluteError(f"{label} has {width} features by number, the ranker has {len(names)}: {_some(names)}")
    values = np.pad(data.features, ((0, 0), (0, len(own) - width))) if len(own) > width else data.features
    ids = (data.queries[data.query_of], data.documents)
    columns = {name: pa.array(column) for name, column in zip(key[-2:], ids[-len(key) :], strict=True)}
    features = Features(pa.table(columns), own, values, label, data.grades)
    _check_finite(features)
    return features


def _numbers(table: pa.Table, names: tuple[str, ...], label: str) -> NDArray[np.float32]:
    absent = [name for name in names if name not in table.column_names]
    if absent or not names or not table.num_rows:
        lacks = f"the features {_some(absent)}" if absent else "features" if not names else "documents"
        raise EluteError(f"{label} lacks {lacks}; it has {_some(table.column_names)}")
    text = [name for name in names if not _is_number(table.schema.field(name).type)]
    if text:
        raise EluteError(f"{label}: {_some(text)} are no numbers; leave these columns out, or write them as numbers")
    values = np.empty((table.num_rows, len(names)), np.float32)
    for number, name in enumerate(names):
        with np.errstate(over="ignore"):
            values[:, number] = table[name].cast(pa.float64()).to_numpy()
    _check_finite(Features(table, names, values, label))
    return values


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _check_finite(features: Features) -> None:
    """Name the worst feature of those that have gaps."""
    if np.isfinite(features.values).all():
        return
    bad = ~np.isfinite(features.values)
    worst = int(bad.sum(axis=0).argmax())
    raise EluteError(
        f"{features.label}: {int(bad.any(axis=1).sum()):,} documents have features that are empty, NaN or infinite "
        f"('{features.names[worst]}' in {int(bad[:, worst].sum()):,}); fill them in, or leave the documents out"
    )


def _check_keys(features: Features) -> None:
    """A document without a name, or two of the same name."""
    columns, key = features.key.column_names, features.key
    for column in columns:
        if key[column].null_count:
            raise EluteError(f"{features.label}: '{column}' is null in {key[column].null_count:,} rows; name each")
    counted = key.group_by(columns).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1))
    if twice.num_rows:
        first = ", ".join(f"{column} {twice[column][0]}" for column in columns)
        raise EluteError(f"{features.label} has {twice.num_rows:,} documents more than once ({first}); keep one row")


def _grades(column: pa.ChunkedArray, label: str) -> NDArray[np.int32]:
    if column.null_count or not pa.types.is_integer(column.type) or pc.min(column).as_py() < 0:
        raise EluteError(f"{label}: '{GRADE}' must be a whole number from 0 in every row")
    return np.asarray(column.to_numpy(), np.int32)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")

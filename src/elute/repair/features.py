"""Bias features: a vector for every factor, such that factors close to each other are seen alike (Eq. 7).

A numeric bias column is a feature by itself. Beside other features positions weigh 10, as in Appendix C.3,
so that contexts are merged before positions are. Any other column becomes one feature for each of its
values (one-hot), or takes its vector from a table that is keyed by bias columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.factors import describe_some, is_position
from elute.errors import EluteError

Floats = NDArray[np.float64]

POSITION_WEIGHT = 10.0

MAX_VALUES = 64
"""Values of a column beyond which one-hot features would make every distance the same and the search slow."""


def bias_features(
    factors: pa.Table,
    columns: Sequence[str] | None = None,
    vectors: pa.Table | None = None,
    weights: Mapping[str, float] | None = None,
) -> Floats:
    """One row a factor. `columns`: the bias columns to use, by default all. `vectors`: a table with some of
    the bias columns as key and numeric columns as features. `weights`: by bias column or feature column."""
    chosen = list(columns if columns is not None else factors.column_names)
    unknown = [column for column in chosen if column not in factors.column_names]
    if unknown:
        raise EluteError(
            f"bias features must be bias columns; '{unknown[0]}' is not ({', '.join(factors.column_names)})"
        )
    given = dict(weights or {})
    parts: list[Floats] = []
    if vectors is not None:
        keys = [column for column in vectors.column_names if column in factors.column_names]
        named = [column for column in vectors.column_names if column not in keys]
        parts.append(_look_up_vectors(factors, vectors, keys, named) * [given.pop(column, 1.0) for column in named])
        chosen = [column for column in chosen if column not in keys]
    beside = len(chosen) > 1 or vectors is not None
    for column in chosen:
        default = POSITION_WEIGHT if beside and is_position(factors, column) else 1.0
        parts.append(_encode_column(factors[column], column) * given.pop(column, default))
    if given:
        raise EluteError(f"a weight is given for '{next(iter(given))}', which is not a bias feature")
    return np.hstack(parts) if parts else np.zeros((factors.num_rows, 1))


def _encode_column(values: pa.ChunkedArray, column: str) -> Floats:
    """A column as it is, or one feature a value; two different values are then 1 apart."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return _require_finite(values.cast(pa.float64()).to_numpy()[:, None], column)
    codes = pc.dictionary_encode(values).combine_chunks().indices.to_numpy()
    distinct = int(codes.max()) + 1
    if distinct > MAX_VALUES:
        raise EluteError(
            f"bias column '{column}' has {distinct:,} values, too many to compare without vectors: "
            "give a table of vectors keyed by it, as `bias_features=`"
        )
    return np.asarray(np.eye(distinct)[codes] / np.sqrt(2))


def _look_up_vectors(factors: pa.Table, vectors: pa.Table, keys: list[str], named: list[str]) -> Floats:
    if not keys or not named:
        raise EluteError(
            f"the table of bias features needs a bias column as key and numeric columns beside it; it has "
            f"{', '.join(vectors.column_names)}"
        )
    for column in named:
        kind = vectors[column].type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise EluteError(f"bias feature '{column}' is not numeric but {kind}")
    for column in keys:
        if pa.types.is_nested(vectors[column].type):
            raise EluteError(f"the key '{column}' of bias features holds {vectors[column].type}, which no bias is")
    rows: dict[tuple[object, ...], int] = {}
    for number, key in enumerate(zip(*(vectors[column].to_pylist() for column in keys), strict=True)):
        if rows.setdefault(key, number) != number:
            raise EluteError(f"the table of bias features has two rows for {describe_some(keys, [key])}")
    wanted = list(zip(*(factors[column].to_pylist() for column in keys), strict=True))
    missing = list(dict.fromkeys(key for key in wanted if key not in rows))
    if missing:
        raise EluteError(f"{len(missing):,} factors have no bias features: {describe_some(keys, missing)}")
    table = np.column_stack([vectors[column].cast(pa.float64()).to_numpy() for column in named])
    return _require_finite(table[[rows[key] for key in wanted]], ", ".join(named))


def _require_finite(features: Floats, column: str) -> Floats:
    if not np.isfinite(features).all():
        raise EluteError(f"bias feature '{column}' is not finite for some factors")
    return features

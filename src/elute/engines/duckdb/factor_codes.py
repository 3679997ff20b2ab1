"""Codes of factors in a scan: by place in a grid where bias columns are small integers, else by a hash of their values.

A grid spares DuckDB the hash and elute the search for it. Which factors there are the survey knows; a row with another
says that the log changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """`sql`: what stands for a row's factor. `find`: from a column of that to codes, -1 where there is none."""

    sql: str
    find: Callable[[pa.Array], Codes]


def by_key(sql: str, keys: NDArray[np.uint64]) -> FactorCodes:
    """Keys of factors in the order of their codes."""
    table = index_keys(keys)
    return FactorCodes(sql, lambda column: table.find(view(column, np.uint64)))


def by_grid(factors: pa.Table) -> FactorCodes | None:
    """None where some column is no integer, or the grid would be large."""
    if not all(pa.types.is_integer(kind) for kind in factors.schema.types):
        return None
    ends = [pc.min_max(factors[column]).as_py() for column in factors.column_names]
    spans = [end["max"] - end["min"] + 1 for end in ends]
    places = math.prod(spans)
    if places > MOST_PLACES:
        return None
    terms, place, step = [], np.zeros(factors.num_rows, np.int64), places
    for column, end, span in zip(factors.column_names, ends, spans, strict=True):
        step //= span
        name, low = quoting.name(column), end["min"]
        inside = f"{name} BETWEEN {low} AND {end['max']}"
        terms.append(f"CASE WHEN {inside} THEN ({name}::BIGINT - {low}) * {step} ELSE {places} END")
        place += (factors[column].to_numpy().astype(np.int64) - low) * step
    codes = np.full(places + 1, -1, np.int32)
    codes[place] = np.arange(len(place), dtype=np.int32)
    found = f"least({' + '.join(terms)}, {places})::UINTEGER"
    return FactorCodes(found, lambda column: _look_up(codes, view(column, np.uint32)))


@jit
def _look_up(codes: Codes, places: NDArray[np.uint32]) -> Codes:
    out = np.empty(places.shape[0], np.int32)
    for i in range(places.shape[0]):
        out[i] = codes[places[i]]
    return out

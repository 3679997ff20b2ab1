"""The factors of several parts as those of one log: each once, in rising order, with sums over the parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.engines.id_keys import IdHash
from elute.engines.parts.hashing import to_plain
from elute.engines.sql.factor_names import numbers_from_text
from elute.errors import EluteError
from elute.kernels.keys import KeyTable

TOTALS = ("elute_rows", "elute_impressions", "elute_clicks")


def merge_factors(tables: Sequence[pa.Table], bias: Sequence[str]) -> tuple[pa.Table, list[NDArray[np.int32]]]:
    """The bias columns and totals, and of each table the codes of its factors among all. Factors are compared by value:
    a hash only finds them."""
    columns = {name: _join([table[name] for table in tables]) for name in bias}
    every = pa.table(columns)
    plain = [to_plain(every[name]) for name in bias]
    code, first = KeyTable().insert(IdHash().hash_ids(plain).keys)
    if not all(column.equals(column.take(pa.array(first)).take(pa.array(code))) for column in plain):
        raise EluteError("two factors share a 64-bit hash; run again")
    found = every.take(pa.array(first)).append_column("elute_row", pa.array(np.arange(len(first))))
    if any(len({table.schema.field(name).type for table in tables}) > 1 for name in bias):
        found = numbers_from_text(found, tuple(bias))
    else:
        found = found.sort_by([(name, "ascending") for name in bias])
    rank = np.empty(len(first), np.int32)
    rank[found["elute_row"].to_numpy()] = np.arange(len(first), dtype=np.int32)
    code = rank[code]
    found = found.drop_columns("elute_row")
    for name in TOTALS:
        amounts = np.concatenate([table[name].to_numpy() for table in tables])
        if amounts.sum(dtype=np.float64) >= 2.0**63:
            raise EluteError("all parts together have more impressions than can be counted; read fewer with `last=`")
        total = np.zeros(len(first), np.int64)
        np.add.at(total, code, amounts)
        found = found.append_column(name, pa.array(total))
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    return found, np.split(code, ends)


def _join(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Of one type: that of all of them, the widest integers; else text, as a source without types has it."""
    columns = [pc.dictionary_decode(one) if pa.types.is_dictionary(one.type) else one for one in columns]
    kinds = {column.type for column in columns}
    if len(kinds) > 1:
        whole = all(pa.types.is_integer(kind) and not pa.types.is_uint64(kind) for kind in kinds)
        columns = [column.cast(pa.int64() if whole else pa.string()) for column in columns]
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], type=columns[0].type)

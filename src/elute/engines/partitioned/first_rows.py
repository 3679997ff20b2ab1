"""A row of each item, from one pass over the log: that in which it is first met. What was met is kept by key, so that
nothing is sorted, grouped or spilt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from elute._util.arrow import view
from elute.engines.duckdb.id_columns import IdReader
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.pieces import Keys
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.kernels.keys import KeyTable

BYTES_AN_ITEM = 56
"""At most, of what was met."""

_AT_ONCE = 1 << 22


def read_first_rows(
    source: DuckDBSource, relation: str, ids: IdReader, items: Sequence[str], keys: Keys, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The items' columns, then those that `ids` reads. `relation`: with its conditions. `keys`: of all items."""
    known, seen = KeyTable(len(keys)), np.zeros(len(keys), np.uint64)
    for begin in range(0, len(keys), _AT_ONCE):
        known.insert(keys[begin : begin + _AT_ONCE])
    check = f"hash({quoting.names(reversed(items))}, 1)"
    chosen = [*(quoting.name(item) for item in items), *ids.sql]
    with source.translate_errors():
        rows = source.connection.sql(f"SELECT {', '.join(chosen)}, {check} AS elute_check FROM {relation}")
        for batch in rows.to_arrow_reader(batch_rows):
            own = ids.read(batch.columns[len(items) : -1]).item
            new = known.find_new(own, view(batch.columns[-1], np.uint64), seen)
            if new is None:
                raise EluteError("two items share a 64-bit hash; run again with exact item codes (`exact=True`)")
            if len(new[0]):
                yield batch.select(range(len(chosen))).take(pa.array(new[0]))

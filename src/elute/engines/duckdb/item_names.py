"""The columns of items, by their codes: from one more pass over the log, in which each item is taken where it is first
met. Rows travel with their ids as text, on all cores; of those that are not the first of an item nothing is kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from elute._util.arrow import take_rows, view
from elute._util.threads import map_threads
from elute.engines.counter import index_keys
from elute.engines.duckdb.id_columns import IdReader
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.pieces import Keys
from elute.engines.sql import quoting
from elute.errors import EluteError

BATCH_ROWS = 1 << 17


def read_names(source: DuckDBSource, ids: IdReader, columns: Sequence[str], conditions: str, items: Keys) -> pa.Table:
    """`conditions`: of the rows that count. `items`: keys in the order of codes."""
    table, seen = index_keys(items), np.zeros(len(items), np.uint64)
    check = f"hash({quoting.names(reversed(columns))}, 1)"
    named = [quoting.name(column) for column in columns]
    chosen = list(dict.fromkeys((check, *named, *ids.sql)))  # text is selected once, for its key and as a name
    places, own = [chosen.index(name) for name in named], [chosen.index(one) for one in ids.sql]

    def read(number: int) -> list[tuple[pa.RecordBatch, np.ndarray]]:
        out = []
        connection, relation = cursors[number]
        with source.translate_errors():
            selected = connection.sql(f"SELECT {', '.join(chosen)} FROM {relation} {conditions}")
            for batch in selected.to_arrow_reader(BATCH_ROWS):
                keys = ids.read([batch.column(place) for place in own]).item
                new = table.find_new(keys, view(batch.column(0), np.uint64), seen)
                if new is None:
                    raise EluteError("two items share a 64-bit hash; run again with exact item codes (`exact=True`)")
                rows, codes = new
                if len(rows):
                    out.append((batch.select(places).take(pa.array(rows)), codes))
                if interrupted.is_set():
                    break
        return out

    interrupted = threading.Event()
    with source.split() as cursors:
        parts = map_threads(read, range(len(cursors)), len(cursors), interrupted=interrupted)
    found = [one for some in parts for one in some]
    if not seen.all():
        raise EluteError("the log changed while it was being read: some items are gone; run again")
    names = pa.Table.from_batches([batch for batch, _ in found])
    row_of = np.empty(len(items), np.int64)
    row_of[np.concatenate([codes for _, codes in found])] = np.arange(names.num_rows)
    return take_rows(names.rename_columns(list(columns)), row_of)

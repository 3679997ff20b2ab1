"""The columns of items, by their codes: taken along while rows are read, of each item where it is first met.

Threads share a table of what was met, without a lock. What one of them writes may be lost, to another that writes to
the same place or to a table that grows meanwhile: the item is then met once more, and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.arrow import take_rows, view
from elute._util.threads import map_threads
from elute.engines.counter import index_keys
from elute.engines.duckdb.id_columns import IdReader
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.pieces import Keys
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.kernels.met import MAX_LOAD, grow_met, make_met, meet

BATCH_ROWS = 1 << 17

ROWS_AN_ITEM = 10
"""More than there mostly are: a table that is too small grows."""


class _Kept(NamedTuple):
    """Names of some items, with their keys and with another hash, which says whether a key stands for two."""

    names: pa.RecordBatch
    keys: Keys
    checks: Keys


class NameKeeper:
    """What is to be selected beside ids so that names can be kept, and those that were."""

    def __init__(self, columns: Sequence[str], ids: Sequence[str], rows: int) -> None:
        """`ids`: SQL of what is selected for ids. `rows`: that will come, about."""
        check = f"hash({quoting.names(reversed(columns))}, 1)"
        named = [quoting.name(column) for column in columns]
        chosen = list(dict.fromkeys((*ids, check, *named)))  # text is selected once, for its key and as a name
        self.sql = chosen[len(ids) :]
        self._columns, self._places, self._check = list(columns), [chosen.index(name) for name in named], len(ids)
        self._met, self._used = make_met(rows // ROWS_AN_ITEM), 0
        self._kept: list[_Kept] = []
        self._lock = threading.Lock()

    def keep(self, keys: Keys, columns: Sequence[pa.Array]) -> None:
        """Some rows: keys of their items; what was selected for ids, and `sql`. Threads may do so at once."""
        checks, rows = view(columns[self._check], np.uint64), np.empty(len(keys), np.int64)
        with self._lock:
            self._used += len(keys)
            if self._used > MAX_LOAD * len(self._met):
                self._met = grow_met(self._met, self._used)
            met = self._met
        new = rows[: meet(met, keys, checks, rows)[0]]
        taken = pa.array(new)
        names = pa.RecordBatch.from_arrays([columns[place].take(taken) for place in self._places], self._columns)
        with self._lock:
            self._used -= len(keys) - len(new)
            self._kept.append(_Kept(names, keys[new], checks[new]))

    def arrange(self, items: Keys) -> pa.Table:
        """The names of these items, in their order. What was kept is spent."""
        kept, self._kept, self._met = self._kept, [], self._met[:0]
        codes = _find_codes([one.keys for one in kept], items)
        checks, row_of = np.concatenate([one.checks for one in kept]), np.full(len(items), -1)
        row_of[codes] = np.arange(len(codes))
        if row_of.min() < 0 or codes.min() < 0:
            raise EluteError("the log changed while it was being read: items came or went; run again")
        if (checks[row_of[codes]] != checks).any():
            raise EluteError("two items share a 64-bit hash; run again with exact item codes (`exact=True`)")
        del codes, checks
        names = pa.Table.from_batches([one.names for one in kept])
        del kept
        names = take_rows(names, row_of)
        pa.default_memory_pool().release_unused()  # as much as the names take, and more
        return names


def read_names(source: DuckDBSource, ids: IdReader, columns: Sequence[str], conditions: str, items: Keys) -> pa.Table:
    """From one more pass over the log. `conditions`: of the rows that count. `items`: keys in the order of codes."""
    names, first = NameKeeper(columns, ids.sql, ROWS_AN_ITEM * len(items)), len(ids.sql)
    interrupted = threading.Event()

    def read(number: int) -> None:
        connection, relation = cursors[number]
        with source.translate_errors():
            selected = connection.sql(f"SELECT {', '.join((*ids.sql, *names.sql))} FROM {relation} {conditions}")
            for batch in selected.to_arrow_reader(BATCH_ROWS):
                names.keep(ids.read(batch.columns[:first]).item, batch.columns)
                if interrupted.is_set():
                    break

    with source.split() as cursors:
        map_threads(read, range(len(cursors)), len(cursors), interrupted=interrupted)
    return names.arrange(items)


def _find_codes(keys: Sequence[Keys], items: Keys) -> NDArray[np.int32]:
    table = index_keys(items)
    return np.concatenate(map_threads(table.find, keys))

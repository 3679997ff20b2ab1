"""A table in Postgres in ranges of its blocks, each read over a connection of its own.

Decoding what a server sends keeps a core busy, so that several connections bring several cores to it. All see the one
state of the table that the first exports. Which rows come when is left open: nothing here depends on their order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from queue import Empty, Full, Queue
from typing import Any

import pyarrow as pa

from elute._util.threads import count_threads
from elute.engines.sql import quoting
from elute.errors import EluteError

MOST = 8
"""Connections: others use the server too."""
BLOCKS = 4096
"""Of a range, at least: 32 MB."""

_EACH = 4
"""Ranges for a connection, so that none waits long for another at the end."""
_TICK = 0.1
_SIZE = """
    SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint FROM pg_class AS c
    WHERE c.oid = {table}::regclass AND c.relkind IN ('r', 'm') AND current_setting('server_version_num')::int >= 140000
"""
"""Blocks of a table; no row for what has none, as views, nor for servers that would read all blocks for every range."""

Connect = Callable[[str], AbstractContextManager[tuple[Any, str]]]


def split_blocks(cursor: Any, table: str) -> list[str]:
    """Conditions that each row of a table meets one of; one that all meet where it is small or cannot be split."""
    cursor.execute(_SIZE.format(table=quoting.text(table)))
    found = cursor.fetchone()
    blocks, connections = int(found[0]) if found else 0, min(count_threads(), MOST)
    ranges = max(1, min(_EACH * connections, blocks // BLOCKS) if connections > 1 else 1)
    ends = [blocks * number // ranges for number in range(1, ranges)]
    above = ["true", *(f"ctid >= '({end},0)'" for end in ends)]
    below = [*(f"ctid < '({end},0)'" for end in ends), "true"]  # the last has no end: a table may grow meanwhile
    return [f"{one} AND {other}" for one, other in zip(above, below, strict=True)]


def read_ranges(cursor: Any, connect: Connect, queries: list[str]) -> Iterator[pa.RecordBatch]:
    """What all queries find. `connect`: another connection, to the state of the table that goes by this name."""
    if len(queries) == 1:
        cursor.execute(queries[0])
        yield from cursor.fetch_record_batch()
        return
    cursor.execute("SELECT pg_export_snapshot()")
    snapshot = str(cursor.fetchone()[0])
    shared = _Shared(queries)

    def read_beside() -> None:
        with suppress(EluteError), connect(snapshot) as (own, _):  # a server that has no more to give gives fewer
            shared.read(own)

    connections = min(count_threads(), MOST, len(queries))
    threads = [threading.Thread(target=shared.read, args=(cursor,), daemon=True)]
    threads += [threading.Thread(target=read_beside, daemon=True) for _ in range(connections - 1)]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) or not shared.batches.empty():
            with suppress(Empty):
                yield shared.batches.get(timeout=_TICK)
    finally:
        shared.stopped = True
        for thread in threads:
            thread.join()
    if shared.error is not None:
        raise shared.error


class _Shared:
    """Queries that threads take one after the other, and what they found."""

    def __init__(self, queries: list[str]) -> None:
        self._left = iter(queries)
        self._lock = threading.Lock()
        self.batches: Queue[pa.RecordBatch] = Queue(2 * MOST)
        self.stopped = False
        self.error: BaseException | None = None

    def read(self, cursor: Any) -> None:
        """Until none is left. What goes wrong is for the thread that waits to say."""
        try:
            while not self.stopped and (query := self._take()) is not None:
                cursor.execute(query)
                for batch in cursor.fetch_record_batch():
                    self._put(batch)
        except BaseException as error:
            self.error, self.stopped = error, True

    def _take(self) -> str | None:
        with self._lock:
            return next(self._left, None)

    def _put(self, batch: pa.RecordBatch) -> None:
        while not self.stopped:
            with suppress(Full):
                self.batches.put(batch, timeout=_TICK)
                break

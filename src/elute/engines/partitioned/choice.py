"""Whether a log is read in memory or by partition."""

from __future__ import annotations

from pathlib import Path

from elute._util.storage import available_memory
from elute.engines.duckdb.engine import DuckDBEngine
from elute.engines.partitioned.engine import OutOfCoreEngine

BYTES_A_ROW = 40
"""Of a log counted in memory, at worst: the rows on their way, and a cell for each, twice for a moment."""


def open_embedded(source: object, exact: bool, memory: int | None, spill: str | Path | None) -> DuckDBEngine:
    """Within `memory`; without a limit, in memory unless the rows of files would take more than half of it: then within
    that half."""
    if memory is not None:
        return OutOfCoreEngine(source, exact, memory, spill)
    opened, half = DuckDBEngine(source, exact, spill=spill), available_memory() // 2
    if opened.rows_in_files * BYTES_A_ROW <= half:
        return opened
    opened.close()
    return OutOfCoreEngine(source, exact, half, spill)

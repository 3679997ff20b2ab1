"""What it costs to look at a counts folder before it is believed, beside reading it.

    python -m benchmarks.door               # BENCH_ROWS=20000000 by default; or a counts folder: DOOR=path

Read as `elute check` does: cells, sizes and queries of items, factors. Without the door the same columns are read from
the same files, and nothing is looked at; so page checksums are not compared either. Goal: at most 5% of the processor's
time. The whole check of the folder is beside it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks import logs


def read_plainly(folder: Path) -> int:
    """As before there was a door."""
    cells = pq.ParquetFile(folder / "cells.parquet").read()
    items = pq.ParquetFile(folder / "items.parquet")
    sizes = items.read(["elute_cells"])["elute_cells"].to_numpy()
    query = items.read(["elute_query"])["elute_query"].to_numpy()
    factors = pq.ParquetFile(folder / "factors.parquet").read()
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    arrays = [cells[name].to_numpy() for name in ("factor", "impressions", "clicks")]
    return len(offsets) + len(query) + factors.num_rows + sum(map(len, arrays))


def read_through_the_door(folder: Path) -> int:
    from elute.engines.counts_folder.reading import CountsFiles

    files = CountsFiles(folder)
    cells = files.cells()
    return len(cells.offsets) + len(files.query_of_item()) + files.factors.num_rows + sum(map(len, cells[1:]))


def check(folder: Path) -> int:
    import elute

    return int(elute.check(folder).components)


def measure(works: dict[str, Callable[[Path], int]], folder: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """Seconds of the processor and of the clock, medians; in turn, so that what else runs strikes all alike."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for work in works.values():
        work(folder)
    for _ in range(repeats):
        for name, work in works.items():
            busy, began = time.process_time(), time.perf_counter()
            work(folder)
            taken[name].append((time.process_time() - busy, time.perf_counter() - began))
    return {
        name: (statistics.median(b for b, _ in all_), statistics.median(c for _, c in all_))
        for name, all_ in taken.items()
    }


def main() -> None:
    import elute

    rows, repeats = int(os.environ.get("BENCH_ROWS", "20000000")), int(os.environ.get("BENCH_REPEATS", "9"))
    folder = Path(os.environ.get("DOOR", ""))
    if not os.environ.get("DOOR"):
        folder = logs.FOLDER / f"counts-{rows}"
        if not folder.exists():
            elute.count(str(logs.click_log(rows)), folder)
    cells = pq.read_metadata(folder / "cells.parquet").num_rows
    print(f"{cells:,} cells, median of {repeats} runs, seconds: processor, clock\n")
    found = measure(
        {"plainly": read_plainly, "through the door": read_through_the_door, "elute check": check}, folder, repeats
    )
    for name, (busy, clock) in found.items():
        print(f"{name:18}{busy:8.3f}{clock:8.3f}")
    more = found["through the door"][0] / found["plainly"][0] - 1
    print(f"\nThe door takes {more:.1%} of reading, by the processor's time.")


if __name__ == "__main__":
    main()

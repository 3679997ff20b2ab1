"""`elute simulate` against its floor: one Bernoulli draw a row and a Parquet file of the same columns and size.

    python -m benchmarks.simulate              # BENCH_ROWS=100000000 for the size the goal is stated at

Goals: PBM within 3 ×, DBN within 8 × of the floor; 100 million impressions under 2 GiB.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Work, compare, main
from elute.ranking.data import RankingData
from elute.simulation import log
from elute.simulation.grades import relevance_of_grades
from elute.simulation.policies.noisy_oracle import NoisyOracle
from elute.simulation.users.registry import build_user
from elute.simulation.world import PAGES_AT_A_TIME, WIDTH, World, draw_pages, spawn_streams

QUERIES, DOCUMENTS = 6_000, 10
"""As in the CMIP paper: MSLR-WEB10K cut to ten documents a query."""


def world(user: str) -> World:
    rng = np.random.default_rng(0)
    n = QUERIES * DOCUMENTS
    data = RankingData(
        np.zeros((n, 1), np.float32),
        rng.integers(0, 5, n).astype(np.int32),
        np.arange(0, n + 1, DOCUMENTS),
        np.array([f"query-{q}" for q in range(QUERIES)]),
        np.array([f"doc-{d}" for d in range(n)]),
    )
    return World(data, NoisyOracle(), build_user(user), relevance_of_grades(data.grades, 4))


def floor(rows: int, target: Path) -> None:
    """What cannot be left out: a draw for every row, and the rows on disk."""
    made, rng = world("pbm"), np.random.default_rng(1)
    names = pa.array(made.data.queries), pa.array(made.data.documents)
    part = PAGES_AT_A_TIME * WIDTH
    row = np.arange(part, dtype=np.int32)
    query, document = row % QUERIES, row % made.data.n_documents
    position = (row % WIDTH + 1).astype(np.int16)
    score = rng.standard_normal(made.data.n_documents).astype(np.float32)[document]
    p = made.relevance[document] * 0.3
    session = np.repeat(np.arange(PAGES_AT_A_TIME), WIDTH)
    with pq.ParquetWriter(target, log._build_schema(made), store_schema=False) as writer:
        for first in range(0, rows, part):
            columns = {
                "session_id": session + first,
                "query_id": pa.DictionaryArray.from_arrays(query, names[0]),
                "doc_id": pa.DictionaryArray.from_arrays(document, names[1]),
                "position": position,
                "score": score,
                "click": (rng.random(part) < p).astype(np.uint8),
            }
            writer.write_table(pa.table(columns, schema=log._build_schema(made)), row_group_size=part)


def prepare(name: str, path: str) -> Work:
    rows = int(path)
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("BENCH_DIR")))
    target = folder / "log.parquet"

    def work() -> float:
        if name == "floor":
            floor(rows, target)
        else:
            made = world(name)
            log.write(target, made, draw_pages(made, rows // WIDTH, spawn_streams(0)), rows // WIDTH)
        size = target.stat().st_size
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return size / 2**20

    if name != "floor":
        small = world(name)
        next(draw_pages(small, 100, spawn_streams(0)))
    return work


def run() -> None:
    rows = int(float(os.environ.get("BENCH_ROWS", "10_000_000")))
    found = compare("benchmarks.simulate", ["floor", "pbm", "dbn"], str(rows), 3 if rows <= 10**7 else 1)
    print(f"{rows:,} impressions\n\n| | seconds | million/s | × floor | GiB | file MiB |\n|---|---|---|---|---|---|")
    for name, run in found.items():
        ratio = run["seconds"] / found["floor"]["seconds"]
        speed = rows / run["seconds"] / 1e6
        print(f"| {name} | {run['seconds']:.2f} | {speed:.1f} | {ratio:.2f} | {run['gib']:.2f} | {run['result']:.0f} |")


if __name__ == "__main__":
    if "--child" in sys.argv:
        main(prepare)
    else:
        run()

"""Logs that would serialise a count: `elute check` beside GROUP BY of the same log.

    python -m benchmarks.hot                # BENCH_ROWS=20000000 by default

One query with 40% of the rows; one item shown under all factors, with 40% of the rows; five million factors; all items
shown once. Goal: at most 2 × GROUP BY hash(item), factor.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import logs, measure

CASES = {
    "a query with 40% of the rows": (
        "CASE WHEN u < .4 THEN 0 ELSE 1 + r % (n // 40) END",
        "r % 1000000",
        "r % 10",
        "0",
    ),
    "an item under all factors": (
        "CASE WHEN u < .4 THEN 0 ELSE 1 + r % (n // 40) END",
        "CASE WHEN u < .4 THEN 0 ELSE r % 20 END",
        "hash(r) % 10",
        "hash(r + 1) % 500",
    ),
    "5 million factors": ("r % (n // 40)", "r % 20", "hash(r) % 10", "hash(r + 1) % 500000"),
    "all items once": ("r // 10", "r % 10", "r % 10", "hash(r // 10) % 500"),
}
GROUP, CHECK = "GROUP BY", "elute check"
QUERY = (
    "SELECT count(*) FROM (SELECT hash(query_id, doc_id) AS item, position, context, count(*), sum(click) "
    "FROM '{path}' GROUP BY ALL)"
)


def make(name: str, rows: int) -> Path:
    path = logs.FOLDER / f"hot-{list(CASES).index(name)}-{rows}.parquet"
    if not path.exists():
        logs.FOLDER.mkdir(exist_ok=True)
        query, doc, position, context = CASES[name]
        duckdb.connect().execute(
            f"""
            COPY (
                SELECT 'q' || ({query})::VARCHAR AS query_id, 'd' || ({doc})::VARCHAR AS doc_id,
                       ({position})::INTEGER AS position, ({context})::INTEGER AS context,
                       (hash(r + 7) % 10 = 0)::UTINYINT AS click
                FROM (SELECT range AS r, hash(range + 3) / 18446744073709551616.0 AS u, {rows} AS n FROM range({rows}))
            ) TO '{path}.tmp' (FORMAT parquet)
            """
        )
        Path(f"{path}.tmp").rename(path)
    return path


def prepare(name: str, path: str) -> measure.Work:
    if name == GROUP:
        connection = duckdb.connect()
        return lambda: [str(value) for value in connection.execute(QUERY.format(path=path)).fetchall()[0]]

    import elute

    def work(at: str) -> Any:
        with elute.read_log(at, bias="position,context") as log:
            return elute.check(log).to_dict()["components"]

    work(str(logs.click_log(10_000)))
    work(str(logs.click_log(1_000_000)))
    return lambda: work(path)


def main() -> None:
    rows, repeats = int(os.environ.get("BENCH_ROWS", "20000000")), int(os.environ.get("BENCH_REPEATS", "3"))
    print(f"{rows:,} rows, median of {repeats} runs, seconds\n")
    print("| log | GROUP BY | elute check | ratio | peak GiB |\n|---|---|---|---|---|")
    for name in CASES:
        found = measure.compare("benchmarks.hot", [GROUP, CHECK], str(make(name, rows)), repeats)
        group, check = found[GROUP]["seconds"], found[CHECK]["seconds"]
        peak = found[CHECK]["gib"]
        print(f"| {name} | {group:.1f} | {check:.1f} | {check / group:.2f} | {peak:.1f} |", flush=True)


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()

"""`elute check` against a scan of the same columns and against GROUP BY item, factor.

make bench                            10 million rows
BENCH_ROWS=100000000 make bench       100 million rows, the size the goals are stated at
"""

from __future__ import annotations

import os
import sys
from typing import Any

import duckdb

from benchmarks import logs, measure

SCAN = "plain scan"
HASH = "scan that hashes item and factor"
GROUP = "GROUP BY hash(item), factor"
GROUP_VALUES = "GROUP BY item, factor"
CONNECT = "elute: connectivity"
EARLY = "elute: connectivity by position alone (connected, so it stops early)"
CHECK = "elute: check, full JSON"
FORMULA = "elute: check, full JSON, under position + context"
NAMES = [SCAN, HASH, GROUP, GROUP_VALUES, CONNECT, EARLY, CHECK, FORMULA]
BIAS = {EARLY: "position", FORMULA: "position + context"}

GOAL_ROWS = 100_000_000

QUERIES = {
    SCAN: "SELECT sum(strlen(query_id)), sum(strlen(doc_id)), sum(position), sum(context), sum(click) FROM '{path}'",
    HASH: "SELECT bit_xor(hash(query_id, doc_id)), bit_xor(hash(position, context)) FROM '{path}'",
    GROUP: "SELECT count(*) FROM (SELECT hash(query_id, doc_id) AS item, position, context, count(*), sum(click) "
    "FROM '{path}' GROUP BY ALL)",
    GROUP_VALUES: "SELECT count(*) FROM (SELECT query_id, doc_id, position, context, count(*), sum(click) "
    "FROM '{path}' GROUP BY ALL)",
}


def prepare(name: str, path: str) -> measure.Work:
    """What each name stands for; kernels are compiled (or loaded) on a small log first."""
    if name in QUERIES:
        query = QUERIES[name].format(path=path)
        connection = duckdb.connect()
        return lambda: [str(value) for value in connection.execute(query).fetchall()[0]]

    import elute

    def work(at: str) -> Any:
        with elute.read_log(at, bias=BIAS.get(name, "position,context")) as log:
            if name in (CONNECT, EARLY):
                return len(set(log.connect().tolist()))
            fields = elute.check(log).to_dict()
            return {key: fields[key] for key in ("items", "factors", "cells", "components", "rankable_queries")}

    work(str(logs.click_log(10_000)))
    return lambda: work(path)


def main() -> None:
    rows = int(os.environ.get("BENCH_ROWS", "10000000"))
    repeats = int(os.environ.get("BENCH_REPEATS", "3"))
    path = logs.click_log(rows)
    print(f"making and measuring on {path} ({path.stat().st_size / 2**20:,.0f} MiB)", file=sys.stderr)
    found = measure.compare("benchmarks.check", NAMES, str(path), repeats)
    print(f"\n{rows:,} rows, median of {repeats} runs\n")
    print("| work | seconds | of the hashing scan | of GROUP BY | peak GiB |")
    print("|---|---|---|---|---|")
    for name in NAMES:
        seconds = found[name]["seconds"]
        print(
            f"| {name} | {seconds:.2f} | {seconds / found[HASH]['seconds']:.2f} | "
            f"{seconds / found[GROUP]['seconds']:.2f} | {found[name]['gib']:.2f} |"
        )
    print(f"\n{found[CHECK]['result']}\n")
    if rows != GOAL_ROWS:
        print(f"The goals below are stated at {GOAL_ROWS:,} rows, where fixed costs no longer show.")
    goals = {
        "connectivity at most 1.5 × the hashing scan": found[CONNECT]["seconds"] / found[HASH]["seconds"] <= 1.5,
        "connectivity at most half of GROUP BY": found[CONNECT]["seconds"] / found[GROUP]["seconds"] <= 0.5,
        "connectivity in at most 2 GiB": found[CONNECT]["gib"] <= 2,
        "full JSON at most 1.0 × GROUP BY (on 2 cores)": found[CHECK]["seconds"] / found[GROUP]["seconds"] <= 1.0,
        "full JSON in at most 3 GiB": found[CHECK]["gib"] <= 3,
    }
    for goal, met in goals.items():
        print(f"{'met' if met else 'NOT MET'}: {goal}")


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()

"""Seconds against cores: check, count and fit beside the GROUP BY that one would write instead.

    python -m benchmarks.cores                    # BENCH_ROWS=100000000 by default; 1, 2, 4, … cores, up to all
    python -m benchmarks.cores --draw FILE.json   # draws docs/img/cores.svg from what an earlier run printed last

Every figure is the median of BENCH_REPEATS (3) runs, each in a process of its own, turn by turn. Goals: the whole check
at most 1.0 × GROUP BY hash(item), factor on 2 cores and 1.25 × on more; on 2 cores, count at most 2 × GROUP BY by value
and fit at most 4 × GROUP BY hash(item), position.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import logs, measure

SCAN = "hashing scan"
GROUP = "GROUP BY hash(item), factor"
CHECK = "elute check, whole JSON"
GROUP_POSITIONS = "GROUP BY hash(item), position"
GROUP_VALUES = "GROUP BY item, position"
COUNT = "elute count"
FIT = "elute fit, with its files"
WORKS = (SCAN, GROUP, CHECK, GROUP_POSITIONS, GROUP_VALUES, COUNT, FIT)

QUERIES = {
    SCAN: "SELECT bit_xor(hash(query_id, doc_id)), bit_xor(hash(position, context)) FROM '{path}'",
    GROUP: "SELECT count(*) FROM (SELECT hash(query_id, doc_id) AS item, position, context, count(*), sum(click) "
    "FROM '{path}' GROUP BY ALL)",
    GROUP_POSITIONS: "SELECT count(*) FROM (SELECT hash(query_id, doc_id) AS item, position, count(*), sum(click) "
    "FROM '{path}' GROUP BY ALL)",
    GROUP_VALUES: "SELECT count(*) FROM (SELECT query_id, doc_id, position, count(*), sum(click) "
    "FROM '{path}' GROUP BY ALL)",
}


def prepare(name: str, path: str) -> measure.Work:
    """Names end in the number of cores; kernels are compiled (or loaded) on a small log first."""
    work, _, cores = name.rpartition(" on ")
    threads = int(cores)
    if work in QUERIES:
        connection = duckdb.connect(config={"threads": threads})
        query = QUERIES[work].format(path=path)
        return lambda: [str(value) for value in connection.execute(query).fetchall()[0]]

    import elute

    def run(at: str) -> Any:
        with tempfile.TemporaryDirectory(dir=logs.FOLDER) as folder:
            if work == COUNT:
                with elute.read_log(at, threads=threads) as log:
                    return log.save_counts(Path(folder) / "counts")["cells"]
            if work == FIT:
                elute.fit(at, threads=threads).save(Path(folder) / "fit")
                return None
            with elute.read_log(at, bias="position,context", threads=threads) as log:
                return elute.check(log).to_dict()["components"]

    run(str(logs.click_log(10_000)))
    run(str(logs.click_log(1_000_000)))
    return lambda: run(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--cores", help="which numbers of cores, as in 2,4,8")
    asked = parser.parse_args()
    if asked.draw:
        draw(json.loads(asked.draw.read_text().splitlines()[-1]))
        return
    rows, repeats = int(os.environ.get("BENCH_ROWS", "100000000")), int(os.environ.get("BENCH_REPEATS", "3"))
    most = len(os.sched_getaffinity(0))
    wanted = [int(n) for n in asked.cores.split(",")] if asked.cores else [1, 2, 4, 8, 16, 32, 64]
    cores = [n for n in wanted if n <= most]
    found: dict[str, list[float]] = {work: [] for work in WORKS}
    peak: dict[str, list[float]] = {work: [] for work in WORKS}
    path = str(logs.click_log(rows))
    for n in cores:
        taken = measure.compare("benchmarks.cores", [f"{work} on {n}" for work in WORKS], path, repeats)
        for work in WORKS:
            found[work].append(taken[f"{work} on {n}"]["seconds"])
            peak[work].append(taken[f"{work} on {n}"]["gib"])
    print(f"\n{rows:,} rows, median of {repeats} runs, seconds (peak GiB)\n")
    print(f"| work | {' | '.join(f'{n} cores' for n in cores)} |\n|---|{'---|' * len(cores)}")
    for work in WORKS:
        cells = (f"{s:.1f} ({g:.1f})" for s, g in zip(found[work], peak[work], strict=True))
        print(f"| {work} | {' | '.join(cells)} |")
    for work, base in ((CHECK, GROUP), (COUNT, GROUP_VALUES), (FIT, GROUP_POSITIONS)):
        ratios = (f"{a / b:.2f}" for a, b in zip(found[work], found[base], strict=True))
        print(f"| {work} / {base} | {' | '.join(ratios)} |")
    print(json.dumps({"rows": rows, "cores": cores, "seconds": found}))


def draw(found: dict[str, Any]) -> None:
    """Seconds against cores, both as logarithms."""
    from elute.reporting.charts import render, specs

    rows = [
        {"cores": cores, "seconds": seconds, "work": work}
        for work in (GROUP, CHECK, GROUP_VALUES, COUNT, FIT)
        for cores, seconds in zip(found["cores"], found["seconds"][work], strict=True)
    ]
    spec = specs.lines(rows, x="cores", y="seconds", series="work", log_x=True, log_y=True)
    Path("docs/img/cores.svg").write_text(render.render_svg(spec), encoding="utf-8")


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()

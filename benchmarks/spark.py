"""`elute check --engine spark` against a plain Spark `groupBy(item, factor).agg` in the same session.

    python -m benchmarks.spark              # BENCH_ROWS=10000000 by default, local[2]
    python -m benchmarks.spark --cluster    # two executors in processes of their own, one of them killed on the way
    python -m benchmarks.spark --fit        # the fit in Spark against the fit here; with --cluster, there
    python -m benchmarks.spark --growth     # 1, 10 and 100 million rows, here and in Spark; draws docs/img/growth.svg

Starting Spark and its Python workers is measured apart from the work. Goal: the whole check below 1.2 × the groupBy.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from benchmarks import logs

BIAS = ["position", "context"]
GOAL = 1.2
ENGINES = {"embedded": "duckdb", "Spark, local[2]": "spark"}


def start(master: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("elute benchmark")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "4g"}
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def group(session: Any, path: Path) -> int:
    """Every cell is made and counted; nothing is written."""
    from pyspark.sql import functions as f

    frame = session.read.parquet(str(path)).groupBy("query_id", "doc_id", *BIAS)
    return int(
        frame.agg(f.count(f.lit(1)).alias("n"), f.sum("click").alias("c")).agg(f.count(f.lit(1))).collect()[0][0]
    )


def check(path: Path, engine: str = "spark") -> dict[str, Any]:
    import elute

    with elute.read_log(str(path), bias=BIAS, engine=engine) as log:
        return elute.check(log).to_dict()


def timed(work: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def compare(rows: int, repeats: int) -> None:
    path = logs.click_log(rows)
    started, session = timed(lambda: start("local[2]"))
    warm, _ = timed(lambda: check(logs.click_log(10_000)))
    print(f"{rows:,} rows; session started in {started:.1f} s, first Python workers and kernels in {warm:.1f} s\n")
    groups, checks = [], []
    for _ in range(repeats):
        seconds, cells = timed(lambda: group(session, path))
        groups.append(seconds)
        seconds, found = timed(lambda: check(path))
        checks.append(seconds)
        if found["cells"] != cells:
            sys.exit(f"elute counts {found['cells']} cells, Spark {cells}")
    ratio = median(checks) / median(groups)
    print("| work | seconds |\n|---|---|")
    print(f"| groupBy(item, factor).agg | {median(groups):.1f} |")
    print(f"| elute check, whole JSON | {median(checks):.1f} |")
    print(f"\nratio {ratio:.2f} (goal below {GOAL}): {'met' if ratio < GOAL else 'missed'}")


def executors() -> list[int]:
    """Processes of this session's executors: others on the machine are not ours to kill."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], check=True, capture_output=True, text=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    parent = {int(row[0]): int(row[1]) for row in rows}
    found = [int(row[0]) for row in rows if "CoarseGrainedExecutorBackend" in row[-1] and "java" in row[-1]]
    return sorted(process for process in found if _descends(process, parent))


def _descends(process: int, parent: dict[int, int]) -> bool:
    """Whether a process was started by this one, or by one that was."""
    while process in parent and process != os.getpid():
        process = parent[process]
    return process == os.getpid()


def killed(rows: int, fit: bool) -> None:
    """The same check in two executors of which one dies once it works; the fit in the other, where it is asked for."""
    import pyspark

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    path = logs.click_log(rows)
    started, session = timed(lambda: start("local-cluster[2,1,1536]"))
    known = executors()
    print(f"{rows:,} rows; session started in {started:.1f} s, executors {known}")
    expected = check(path, "duckdb")
    done = threading.Event()
    victims: list[int] = []

    def kill() -> None:
        tracker = session.sparkContext.statusTracker()
        while not done.wait(0.05):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage is not None and stage.numActiveTasks and stage.numTasks > 1 for stage in stages):
                victims.append(executors()[0])
                os.kill(victims[0], signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    seconds, found = timed(lambda: check(path))
    done.set()
    killer.join()
    same, after = found == expected, executors()
    apart = fit_apart(path) if fit else 0.0
    said = {"seconds": seconds, "killed": victims, "executors_after": after, "same": same, "fit_apart": apart}
    print(json.dumps(said))
    session.stop()
    sys.exit(0 if same and victims and apart < 1e-4 else 1)


def fit_apart(path: Path) -> float:
    """How far propensities fitted in Spark are from those fitted here, in standard errors; an executor is killed once
    the cells are counted, so that its partition must be counted again."""
    import numpy as np

    import elute

    with elute.read_log(str(path)) as here, elute.read_log(str(path), engine="spark", memory=1) as there:
        one = elute.PBM(relevance_prior="none").fit(here)
        there.partitions()
        os.kill(executors()[0], signal.SIGKILL)
        other = elute.PBM(relevance_prior="none").fit(there)
    apart = np.abs(np.log(other.propensity_ / one.propensity_))
    return float((apart / np.maximum(one.propensity_log_se_, 1e-3)).max())


def fits(rows: int) -> None:
    """Seconds of a fit with all that is written, in Spark and here."""
    import elute

    path = str(logs.click_log(rows))
    started, _ = timed(lambda: start("local[2]"))
    print(f"{rows:,} rows; session started in {started:.1f} s\n\n| fit | seconds | Newton steps |\n|---|---|---|")

    def fit(path: str, **options: Any) -> int:
        with elute.read_log(path, **options) as log:
            model = elute.PBM(relevance_prior="auto").fit(log)
            for part in model.relevance_parts():
                part.validate()
            return int(model.iterations_)

    ways: dict[str, dict[str, Any]] = {
        "embedded": {},
        "embedded, --memory 2GB": {"memory": 2 << 30},
        "Spark, cells handed over": {"engine": "spark"},
        "Spark, cells stay there": {"engine": "spark", "memory": 1},
    }
    for name, options in ways.items():
        fit(str(logs.click_log(10_000)), **options)
        seconds, steps = timed(partial(fit, path, **options))
        print(f"| {name} | {seconds:.1f} | {steps} |", flush=True)


def growth(sizes: tuple[int, ...] = (1_000_000, 10_000_000, 100_000_000)) -> None:
    """Seconds of the whole check by size; the picture of the docs."""
    from elute.reporting.charts import render, specs

    start("local[2]")
    for engine in ENGINES.values():
        check(logs.click_log(10_000), engine)
    rows = []
    print("| rows | " + " | ".join(ENGINES) + " |\n|---|" + "---|" * len(ENGINES))
    for size in sizes:
        path = logs.click_log(size)
        seconds = {name: timed(partial(check, path, engine))[0] for name, engine in ENGINES.items()}
        print(f"| {size:,} | " + " | ".join(f"{value:.1f}" for value in seconds.values()) + " |", flush=True)
        rows += [{"rows": size, "seconds": value, "engine": name} for name, value in seconds.items()]
    spec = specs.lines(rows, x="rows", y="seconds", series="engine", log_x=True, log_y=True)
    Path("docs/img/growth.svg").write_text(render.render_svg(spec), encoding="utf-8")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--cluster", action="store_true")
    options.add_argument("--growth", action="store_true")
    options.add_argument("--fit", action="store_true")
    chosen = options.parse_args()
    size = int(os.environ.get("BENCH_ROWS", "10000000"))
    if chosen.growth:
        growth()
    elif chosen.cluster:
        killed(size, chosen.fit)
    elif chosen.fit:
        fits(size)
    else:
        compare(size, int(os.environ.get("BENCH_REPEATS", "2")))

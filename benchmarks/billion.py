"""`elute check` and `elute fit` of a log of a billion rows on two cores.

    python -m benchmarks.billion [check] [fit]     # BENCH_ROWS=1000000000, BENCH_CORES=2, BENCH_MEMORY=20GB

Prints seconds, the most memory that was resident, and the most disk that spills took. The log, a folder of 40 Parquet
files, is made first, on all cores; it takes about 10 GB of disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import logs

FILES = 40


def main() -> None:
    rows = int(os.environ.get("BENCH_ROWS", "1000000000"))
    cores, memory = int(os.environ.get("BENCH_CORES", "2")), os.environ.get("BENCH_MEMORY", "20GB")
    began = time.perf_counter()
    folder = logs.split_click_log(rows, FILES)
    print(f"made in {time.perf_counter() - began:.0f} s: {_weigh(folder):.1f} GiB", flush=True)
    for work in sys.argv[1:] or ("check", "fit"):
        with tempfile.TemporaryDirectory(dir=logs.FOLDER) as scratch:
            words = [work, str(folder), "--memory", memory]
            words += (
                ["--bias", "position,context", "--json"]
                if work == "check"
                else ["--bias", "position", "--out", f"{scratch}/fit"]
            )
            seconds, code, resident, spilt = run(words, Path(scratch), set(sorted(os.sched_getaffinity(0))[:cores]))
        print(
            f"{work} of {rows:,} rows on {cores} cores, --memory {memory}: {seconds:.0f} s, exit code {code}, "
            f"{resident:.1f} GiB resident, {spilt:.1f} GiB of disk",
            flush=True,
        )


def run(words: list[str], scratch: Path, cores: set[int]) -> tuple[float, int, float, float]:
    """Seconds, exit code, GiB resident and GiB of disk, both at most."""
    environment = {**os.environ, "TMPDIR": str(scratch)}
    command = [sys.executable, "-c", "from elute.cli import main; main()", *words]
    began, spilt = time.perf_counter(), 0.0
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, cores)
    )
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return time.perf_counter() - began, process.returncode, usage.ru_maxrss / 2**20, spilt
        spilt = max(spilt, _weigh(scratch))
        time.sleep(1.0)


def _weigh(folder: Path) -> float:
    """GiB."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total / 2**30


if __name__ == "__main__":
    main()

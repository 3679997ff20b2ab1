"""`elute check` and `elute fit` under a memory limit that the system enforces.

    python -m benchmarks.memory             # BENCH_ROWS=100000000, --memory 2GB, in a control group of 2 GB

A control group (Linux, root) counts pages of mapped files too, and ends a process that cannot keep to its limit. Where
there is none, the peak of resident memory is printed and nothing is enforced.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import logs

LIMIT = "2GB"
GROUPS = Path("/sys/fs/cgroup")
NEWER = (GROUPS / "cgroup.controllers").exists()
GROUP = (GROUPS if NEWER else GROUPS / "memory") / "elute-benchmark"
MOST, PEAK = ("memory.max", "memory.peak") if NEWER else ("memory.limit_in_bytes", "memory.max_usage_in_bytes")


def limited() -> bool:
    """Make the control group; false where that is not ours to do."""
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / MOST).write_text(str(2 << 30))
    except OSError as error:
        print(f"no limit enforced: {error}", file=sys.stderr)
        return False
    return True


def enter() -> None:
    (GROUP / "cgroup.procs").write_text(str(os.getpid()))


def main() -> None:
    rows = int(os.environ.get("BENCH_ROWS", "100000000"))
    path, enforced = logs.click_log(rows), limited()
    out = logs.FOLDER / "limited-fit"
    works = {
        "check, 5,000 factors": ["check", str(path), "--bias", "position,context", "--json"],
        "fit, 10 factors": ["fit", str(path), "--json", "--relevance-prior", "none", "--out", str(out)],
    }
    print("| work | limit | seconds | exit code | peak GiB |\n|---|---|---|---|---|")
    for name, words in works.items():
        for limit in (None, LIMIT):
            extra = [] if limit is None else ["--memory", limit, "--spill", str(logs.FOLDER)]
            began = time.perf_counter()
            command = [sys.executable, "-c", "from elute.cli import main; main()", *words, *extra]
            entering = enter if enforced and limit else None
            done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=entering)
            seconds = time.perf_counter() - began
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            if entering is not None:
                peak = int((GROUP / PEAK).read_text()) / 2**30
            print(f"| {name} | {limit or 'none'} | {seconds:.1f} | {done.returncode} | {peak:.2f} |", flush=True)
            if done.returncode not in (0, 3):
                print(done.stderr[-600:], file=sys.stderr)


if __name__ == "__main__":
    main()

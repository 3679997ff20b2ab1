"""`elute check`, `fit` and `count` under a memory limit that the system enforces.

    python -m benchmarks.memory             # BENCH_ROWS=100000000, --memory 2GB, in a control group of 2 GB

A control group (Linux, root) counts the pages of files too, and ends a process that cannot keep to its limit. Where
there is none, nothing is enforced; the peak of resident memory is printed in any case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import logs

LIMIT = "2GB"
GROUPS = Path("/sys/fs/cgroup")
NEWER = (GROUPS / "cgroup.controllers").exists()
GROUP = (GROUPS if NEWER else GROUPS / "memory") / "elute-benchmark"
MOST = "memory.max" if NEWER else "memory.limit_in_bytes"


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


def measured(words: list[str], enforced: bool) -> tuple[float, int, float]:
    """Seconds, exit code, and the most memory that was resident, in GiB."""
    command = [sys.executable, "-c", "from elute.cli import main; main()", *words]
    began = time.perf_counter()
    with (logs.FOLDER / "said.txt").open("w+") as said:
        entering = enter if enforced else None
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, preexec_fn=entering)
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        if code not in (0, 3):
            said.seek(0)
            print(said.read()[-600:], file=sys.stderr)
    return time.perf_counter() - began, code, usage.ru_maxrss / 2**20


def main() -> None:
    rows = int(os.environ.get("BENCH_ROWS", "100000000"))
    path, enforced = str(logs.click_log(rows)), limited()
    out, counts = str(logs.FOLDER / "limited-fit"), str(logs.FOLDER / "limited-counts")
    works = {
        "check, 5,000 factors": ["check", path, "--bias", "position,context", "--json"],
        "fit, 10 factors": ["fit", path, "--json", "--out", out],
        "fit, 10 factors, --relevance-prior none": ["fit", path, "--json", "--relevance-prior", "none", "--out", out],
        "count, 10 factors": ["count", path, "--json", "--out", counts],
        "fit of the counts": ["fit", counts, "--json", "--out", out],
    }
    print("| work | limit | seconds | exit code | resident GiB |\n|---|---|---|---|---|")
    for name, words in works.items():
        for limit in (None, LIMIT):
            extra = [] if limit is None else ["--memory", limit, "--spill", str(logs.FOLDER)]
            seconds, code, peak = measured([*words, *extra], enforced and limit is not None)
            print(f"| {name} | {limit or 'none'} | {seconds:.1f} | {code} | {peak:.2f} |", flush=True)


if __name__ == "__main__":
    main()

"""Run one piece of work in a process of its own and print its seconds and its peak memory as JSON."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

Work = Callable[[], Any]


def main(prepare: Callable[[str, str], Work]) -> None:
    """Called in the child: `prepare(name, path)` loads and warms up, the work it returns is measured."""
    name, path = sys.argv[2:4]
    work = prepare(name, path)
    started, used = time.perf_counter(), time.process_time()
    result = work()
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "cpu": cpu, "gib": peak, "result": result}))


def compare(module: str, names: list[str], path: str, repeats: int) -> dict[str, dict[str, Any]]:
    """Measure every piece of work `repeats` times, turn by turn, so that a slow spell hits all alike."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            command = [sys.executable, "-m", module, "--child", name, path]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
            runs[name].append(json.loads(done.stdout.splitlines()[-1]))
            print(f"  {name}: {runs[name][-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
    return {
        name: {
            "seconds": median(run["seconds"] for run in taken),
            "cpu": median(run["cpu"] for run in taken),
            "gib": max(run["gib"] for run in taken),
            "result": taken[0]["result"],
        }
        for name, taken in runs.items()
    }

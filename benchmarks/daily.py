"""Counts that grow: what a day costs that is appended, and a month that is checked from its parts.

    python -m benchmarks.daily              # BENCH_ROWS=1000000 a day by default, BENCH_DAYS=60
    python -m benchmarks.daily shop         # a log of few queries, asked again and again
    python -m benchmarks.daily shop warm    # fits of one window after the other, from scratch and from yesterday's

A day appended to a folder of all the others, beside the same day counted into a folder of its own (goal: at most 1.2
times); the last 28 days checked from the folder, beside the files of these days checked as one log (goal: at most 0.1
times, with the same JSON). Each in a process of its own, by the clock and by the processor. What parts save hangs on
how many rows became a cell: on the log that all benchmarks share, with a query for 112 rows, a day's cells are nearly
as many as its rows; in a shop they are not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks import logs, measure

ROWS, DAYS, LAST = int(os.environ.get("BENCH_ROWS", "1000000")), int(os.environ.get("BENCH_DAYS", "60")), 28
REPEATS = int(os.environ.get("BENCH_REPEATS", "3"))
WINDOWS = 3
"""Fitted with `warm`, each from the one before."""

ROWS_A_QUERY = 400
"""Of a day, in the shop's log."""


def prepare(name: str, path: str) -> measure.Work:
    """A look at little loads and compiles what is needed."""
    import elute

    folder, parts = logs.FOLDER / f"daily-{Path(path).name}", sorted(Path(path).glob("*.parquet"))
    small = logs.click_log(10_000)
    elute.count(small, folder / "small", append=True, key="day=0")
    elute.check(folder / "small")
    elute.check(small)
    latest = [str(part) for part in parts[-LAST:]]

    def work() -> dict[str, object]:
        said = None
        if name == "count":
            elute.count(parts[-1], folder / "day")
        elif name == "append":
            elute.count(parts[-1], folder / "parts", append=True, key=f"day={len(parts) - 1:03}")
        elif name == "check parts":
            said = elute.check(folder / "parts", last=LAST).to_json()
        else:
            said = elute.check(latest).to_json()
        return {"said": said}

    return work


def compare_fits(folder: Path) -> None:
    """Rounds and seconds of the last windows, and how far the two fits are from one stopped much later."""
    import numpy as np

    import elute

    earlier = elute.fit(folder, last=LAST, drop=f"day > {DAYS - 1 - WINDOWS:03}")
    for day in range(DAYS - WINDOWS, DAYS):
        window: dict[str, Any] = {"last": LAST, "drop": f"day > {day:03}"}
        cold, warm = elute.fit(folder, **window), elute.fit(folder, warm=earlier, **window)
        exact = elute.fit(folder, tolerance=1e-10, **window)
        assert exact.propensities is not None
        for name, fit in (("cold", cold), ("warm", warm)):
            assert fit.propensities is not None
            off = np.abs(np.divide(fit.propensities["propensity"], exact.propensities["propensity"]) - 1).max()
            rounds, seconds = fit.summary["iterations"], fit.summary["seconds"]
            print(f"  day {day:03} {name}: {rounds} rounds, {seconds:.2f} s, propensities within {off:.0e}")
        earlier = warm


def main() -> None:
    import elute

    path = logs.split_click_log(ROWS * DAYS, DAYS, ROWS // ROWS_A_QUERY if "shop" in sys.argv else None)
    folder = logs.FOLDER / f"daily-{path.name}" / "parts"
    shutil.rmtree(folder, ignore_errors=True)
    cells = 0
    for day, part in enumerate(sorted(path.glob("*.parquet"))):
        cells += elute.count(part, folder, append=True, key=f"day={day:03}").cells
    if "warm" in sys.argv:
        compare_fits(folder)
        return
    names = ["count", "append", "check parts", "check log"]
    found = measure.compare("benchmarks.daily", names, str(path), REPEATS)
    print(f"{DAYS} days of {ROWS:,} rows, {cells // DAYS:,} cells a day")
    for name in names:
        busy = found[name]["cpu"]
        print(f"  {name:12} {found[name]['seconds']:7.2f} s {busy:7.2f} s of processors {found[name]['gib']:5.2f} GiB")
    for one, other, goal in (("append", "count", 1.2), ("check parts", "check log", 0.1)):
        clock = found[one]["seconds"] / found[other]["seconds"]
        busy = found[one]["cpu"] / found[other]["cpu"]
        print(f"  {one} / {other}: {clock:.3f} by the clock, {busy:.3f} of processors; goal {goal}")
    same = [json.loads(found[name]["result"]["said"]) for name in names[2:]]
    print(f"  the same JSON: {same[0] == same[1]}")


if __name__ == "__main__":
    if "--child" in sys.argv:
        measure.main(prepare)
    else:
        main()

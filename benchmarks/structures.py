"""`elute check` of several bias columns under a formula, against the same log with one propensity a combination.

python -m benchmarks.structures                            10 million rows, 50,000 factors
BENCH_ROWS=100000000 python -m benchmarks.structures       100 million rows, the size the goal is stated at
BENCH_EXPLORE=1 …                                          also the other structures that `--explore` tries
"""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks import logs, measure

PRODUCT = "layout,position,context"
ADDITIVE = "layout + position + context"
JOINED = "position + layout:context"
PAIRS = "position + layout:context + position:context"
EXPLORE = "--explore"
NAMES = [PRODUCT, ADDITIVE, JOINED, PAIRS]

GOAL_ROWS = 100_000_000
GOAL = 1.5


def prepare(name: str, path: str) -> measure.Work:
    """The check under one `--bias`; kernels are compiled (or loaded) on a small log first."""
    import elute

    def work(at: str) -> Any:
        with elute.read_log(at, bias=PRODUCT if name == EXPLORE else name) as log:
            fields = elute.check(log, explore=name == EXPLORE).to_dict()
        if name == EXPLORE:
            return [(one["formula"], one["effects"], one["median_log_se"]) for one in fields["structures"]]
        kept = {key: fields[key] for key in ("items", "factors", "cells", "components", "rung")}
        return {**kept, "effects": fields.get("effects", {}).get("effects"), **fields["precision"]}

    work(str(logs.layout_log(10_000)))
    return lambda: work(path)


def main() -> None:
    rows = int(os.environ.get("BENCH_ROWS", "10000000"))
    repeats = int(os.environ.get("BENCH_REPEATS", "3"))
    names = [*NAMES, EXPLORE] if os.environ.get("BENCH_EXPLORE") else NAMES
    path = logs.layout_log(rows)
    print(f"making and measuring on {path} ({path.stat().st_size / 2**20:,.0f} MiB)", file=sys.stderr)
    found = measure.compare("benchmarks.structures", names, str(path), repeats)
    print(f"\n{rows:,} rows, median of {repeats} runs\n")
    print("| --bias | effects | components | seconds | of the product's | CPU seconds | of the product's | peak GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in NAMES:
        of, ratio, busy = found[name], *(found[name][kind] / found[PRODUCT][kind] for kind in ("seconds", "cpu"))
        effects = of["result"]["effects"] or of["result"]["factors"]
        print(
            f"| `{name}` | {effects:,} | {of['result']['components']:,} | {of['seconds']:.2f} | {ratio:.2f} | "
            f"{of['cpu']:.2f} | {busy:.2f} | "
            f"{of['gib']:.2f} |"
        )
    if EXPLORE in found:
        print(f"\n{found[EXPLORE]['seconds']:.0f} s for all of --explore: {found[EXPLORE]['result']}")
    if rows != GOAL_ROWS:
        print(f"\nThe goal is stated at {GOAL_ROWS:,} rows, where fixed costs no longer show.")
    met = found[ADDITIVE]["seconds"] <= GOAL * found[PRODUCT]["seconds"]
    print(f"\n{'met' if met else 'NOT MET'}: {ADDITIVE} within {GOAL} × of {PRODUCT}")


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()

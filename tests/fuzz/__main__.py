"""`make fuzz`: a table of what was tried and what held, by kind of file; exit code 1 where something did not."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz.attack import Worker, attack, attack_all
from fuzz.kinds import KINDS
from fuzz.worlds import build


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=40, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", "0")))
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="only these kinds")
    parser.add_argument("--only", type=int, help="one input, by its number: to look into it")
    parser.add_argument("--world", type=Path, help="where the sound files are, or are to be kept")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="elute-fuzz-") as scratch:
        world = asked.world or Path(scratch) / "world"
        if not world.exists():
            world.mkdir(parents=True)
            build(world)
        kinds = asked.kind or list(KINDS)
        if asked.only is not None:
            worker = Worker()
            for kind in kinds:
                found = attack(world, Path(scratch), kind, asked.seed, asked.only, worker)
                print(f"{found.tried}\n{found.fault or 'held'}\n{found.said}")
            worker.close()
            return 0
        return _run(world, Path(scratch), asked.seed, dict.fromkeys(kinds, asked.inputs))


def _run(world: Path, scratch: Path, seed: int, per_kind: dict[str, int]) -> int:
    tried: Counter[str] = Counter()
    held: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    began = time.perf_counter()
    for found in attack_all(world, scratch, seed, per_kind):
        tried[found.tried.kind] += 1
        held[found.tried.kind] += found.fault is None
        if found.fault is not None:
            faults[found.fault.partition(" SIG")[0]] += 1
            last = found.said.strip().splitlines()[-1:] or [""]
            print(f"{found.fault}: {found.tried}\n    {last[0][:300]}", flush=True)
    print(f"\n{'kind of file':22}{'tried':>8}{'passed':>8}")
    for kind in per_kind:
        print(f"{kind:22}{tried[kind]:8,}{held[kind]:8,}")
    print(f"{'all':22}{tried.total():8,}{held.total():8,}   in {time.perf_counter() - began:.0f} s, seed {seed}")
    for fault in ("traceback", "signal", "hang", "half-written output"):
        print(f"{fault + 's':22}{faults.pop(fault, 0):8,}")
    for fault, count in faults.items():
        print(f"{fault:22}{count:8,}")
    return 0 if tried == held else 1


if __name__ == "__main__":
    sys.exit(main())

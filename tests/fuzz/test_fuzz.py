"""Damaged files of every kind through the verbs that read them, for as long as there is time (`make fuzz` has more);
and the fuzzer itself, which must see what it looks for."""

from __future__ import annotations

import os
import random
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from fuzz.attack import Worker, attack_all, find_fault
from fuzz.damage import BLIND, INFORMED, change_json, damage
from fuzz.kinds import KINDS
from fuzz.worlds import build

SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))
LINE = {"code": 1, "out": "", "err": "elute: it.json is not a plan; make it again\n", "trace": ""}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    build(folder)
    return folder


def test_every_kind_of_file_is_answered_in_one_line_or_rightly(world: Path, tmp_path: Path) -> None:
    end, faults = time.monotonic() + SECONDS, []
    for tried, found in enumerate(attack_all(world, tmp_path, seed=20, per_kind=dict.fromkeys(KINDS, 50)), start=1):
        if found.fault is not None:
            faults.append(f"{found.fault}: {found.tried}\n{found.said}")
        if time.monotonic() > end and tried >= len(KINDS):
            break
    assert not faults, "\n".join(faults)


def test_sound_files_pass(world: Path, tmp_path: Path) -> None:
    """Else the fuzzer would see refusals of nothing: each kind with its first verb, undamaged."""
    worker = Worker()
    try:
        for number, (kind, what) in enumerate(KINDS.items()):
            if kind == "checkpoint":  # that writes where it reads
                continue
            out = tmp_path / str(number) / "written"
            out.parent.mkdir()
            words = [word.format(it=world / what.source, out=out, world=world) for word in what.calls[0].split(" ")]
            answer = worker.call(words)
            assert answer["code"] in (0, 3), (kind, answer)
            assert find_fault(answer, what.calls[0], out, absent=False, must_refuse=False) is None, (kind, answer)
    finally:
        worker.close()


def test_the_same_seed_is_the_same_damage(tmp_path: Path) -> None:
    results = set()
    for _ in range(2):
        path = tmp_path / "plan.json"
        path.write_text('{"a": [1, 2, {"b": "c"}], "d": null}')
        change_json(path, random.Random(5))
        results.add(path.read_text())
    assert len(results) == 1


def test_damage_damages(tmp_path: Path, world: Path) -> None:
    """Nearly every way changes the file it is given."""
    for name in ("merge.json", "log.parquet", "network/ranker.npz", "trees/ranker.txt", "labels.csv"):
        sound, changed = (world / name).read_bytes(), 0
        path = tmp_path / f"it{Path(name).suffix}"
        for number in range(30):
            path.write_bytes(sound)
            way = damage(path, random.Random(number))
            assert way in {one.__name__ for one in (*BLIND, *INFORMED[path.suffix])}
            changed += not path.is_file() or path.read_bytes() != sound
            if path.is_dir():
                path.rmdir()
        assert changed >= 24, name


@pytest.mark.parametrize(
    ("process", "seen"),
    [
        ("input(); import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", {"signal": "SIGSEGV"}),
        ("input(); import os; os.abort()", {"signal": "SIGABRT"}),
        ("input(); import time; time.sleep(60)", {"hang": True}),
        ("""input(); print('{"code": 0}', flush=True); input()""", {"code": 0}),
    ],
)
def test_a_worker_that_dies_or_hangs_is_seen(process: str, seen: dict[str, object]) -> None:
    worker = Worker([sys.executable, "-c", process], seconds=5)
    assert worker.call(["check"]) == seen
    worker.close()


def test_what_is_wrong_with_an_answer(tmp_path: Path) -> None:
    out = tmp_path / "out" / "written"
    out.parent.mkdir()

    def look(call: str = "check {it}", must_refuse: bool = False, **changes: object) -> str | None:
        return find_fault({**LINE, **changes}, call, out, absent=False, must_refuse=must_refuse)

    assert look() is None
    assert look(trace="Traceback …") == look(err="Traceback (most recent call last)\n") == "traceback"
    assert look(code=2) == "exit code 2"
    assert look(out="half an answer") == look(err="") == look(err=LINE["err"] * 2) == "not one line"  # type: ignore[operator]
    assert look(code=0, out="{}", must_refuse=True) == "believed a changed file"
    assert look("check {it} --json", code=0, out="{} {}") == look("check --json", code=0, out="[NaN]") == "not JSON"
    assert look("fit {it} --out {out}", code=0) == "no output"
    out.mkdir()
    assert look("fit {it} --out {out}", code=0) is None
    assert look("fit {it} --out {out}") == "output of a failed run"
    (out.parent / ".written.tmp").touch()
    assert look("fit {it} --out {out}") == "half-written output"


def test_names_of_kinds_fit_the_table() -> None:
    assert all(len(kind) < 22 for kind in KINDS)
    assert all(first != second for first, second in pairwise(sorted(KINDS)))

"""Inputs made and run: a damaged file, a verb, and whether elute answered in one line or rightly."""

from __future__ import annotations

import json
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.damage import damage
from fuzz.kinds import KINDS

_SECONDS = 120
"""After which a call counts as hanging: the first ones may compile."""


@dataclass(frozen=True)
class Input:
    """What was tried, so that it can be tried again: `--seed`, `--kind` and `--only`."""

    kind: str
    number: int
    seed: int
    damage: str
    command: str

    def __str__(self) -> str:
        return f"{self.kind}, input {self.number} of seed {self.seed} ({self.damage}): elute {self.command}"


@dataclass(frozen=True)
class Verdict:
    """`fault`: None where elute held."""

    tried: Input
    fault: str | None
    said: str = ""


class Worker:
    """A process of `fuzz.worker`, started anew whenever it dies."""

    def __init__(self, command: list[str] | None = None, seconds: float = _SECONDS) -> None:
        self._command = command or [sys.executable, "-m", "fuzz.worker"]
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None

    def call(self, arguments: list[str]) -> dict[str, Any]:
        """What it answers; `signal` where it died, `hang` where it took too long."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=Path(__file__).parents[1],
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process without pipes")
        process.stdin.write(json.dumps(arguments) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self._seconds)
        line = process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"hang": True} if not ready else {"signal": _name_end(process.returncode)}

    def close(self) -> None:
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


def _name_end(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def attack(world: Path, scratch: Path, kind: str, seed: int, number: int, worker: Worker) -> Verdict:
    """One input of a kind; the same for the same seed and number."""
    chance = random.Random(f"{kind} {seed} {number}")
    what = KINDS[kind]
    place = scratch / "job"
    shutil.rmtree(place, ignore_errors=True)
    (place / "out").mkdir(parents=True)
    copy = place / Path(what.source).name
    (shutil.copytree if (world / what.source).is_dir() else shutil.copy)(world / what.source, copy)
    file = copy / chance.choice(what.files) if what.files else copy
    before = file.read_bytes()
    unsealed = bool(what.mark) and chance.random() < 0.6
    if unsealed:
        _remove_seals(copy / what.mark)
        before = file.read_bytes()
    way = damage(file, chance)
    call = chance.choice(what.calls)
    out = place / "out" / "written"
    words = [word.format(it=copy, out=out, world=world) for word in call.split(" ")]
    tried = Input(kind, number, seed, f"{way} of {file.name}{' without seals' if unsealed else ''}", call)
    answer = worker.call(words)
    changed = not file.is_file() or file.read_bytes() != before
    sealed = bool(what.mark) and not unsealed and file.name != what.mark and changed
    fault = find_fault(answer, call, out, absent=way in ("remove", "become_folder"), must_refuse=sealed)
    kept = [copy / name for name in what.kept if copy / name != file]
    if fault is None and answer["code"] == 1 and not all(path.exists() for path in kept):
        fault = "lost what was there"
    return Verdict(tried, fault, answer.get("trace") or answer.get("err", ""))


def _remove_seals(mark: Path) -> None:
    """As an older version, or an attacker, would have written it."""
    fields = json.loads(mark.read_text(encoding="utf-8"))
    fields.pop("files", None)
    mark.write_text(json.dumps(fields), encoding="utf-8")


def find_fault(answer: dict[str, Any], call: str, out: Path, absent: bool, must_refuse: bool) -> str | None:
    """What is wrong with an answer. `absent`: the file is gone, which may be wrong usage too."""
    if "hang" in answer:
        return "hang"
    if "signal" in answer:
        return f"signal {answer['signal']}"
    code, said = answer["code"], [line for line in answer["err"].splitlines() if line.strip()]
    if answer["trace"] or "Traceback" in answer["err"] or any("--debug" in line for line in said):
        return "traceback"
    if code not in ((0, 1, 2, 3) if absent else (0, 1, 3)):
        return f"exit code {code}"
    if must_refuse and code != 1:
        return "believed a changed file"
    left = [path.name for path in out.parent.iterdir()]
    if any(name.startswith(".") or name.endswith((".tmp", ".unfinished")) for name in left):
        return "half-written output"
    if code in (1, 2):
        if left:
            return "output of a failed run"
        if code == 1 and (answer["out"].strip() or not _is_one_line(said)):
            return "not one line"
    elif code == 0:
        if "{out}" in call and not left:
            return "no output"
        if "--json" in call and not _is_json(answer["out"]):
            return "not JSON"
    return None


def _is_one_line(said: list[str]) -> bool:
    said = [line for line in said if "compiling kernels" not in line]
    return len(said) == 1 and said[0].startswith("elute: ")


def _is_json(text: str) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def attack_all(world: Path, scratch: Path, seed: int, per_kind: dict[str, int]) -> Iterator[Verdict]:
    """So many inputs of each kind, in turn: whenever one stops, all kinds have been tried about equally."""
    worker = Worker()
    try:
        for number in range(max(per_kind.values(), default=0)):
            for kind, count in per_kind.items():
                if number < count:
                    yield attack(world, scratch, kind, seed, number, worker)
    finally:
        worker.close()

"""Every option of every verb with hostile values: an exit code that means something, one line, no traceback.

Values that cannot be are refused before anything is read, so that most of these calls take milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from elute.cli import main
from elute.cli.commands import VERBS
from elute.errors import EluteError
from elute.results.invocation import DEFAULTS

HOSTILE = (
    "-1", "0", "1e300", "-1e300", "5e-324", "nan", "inf", "-inf", "", " ", "1" + "0" * 30, "4611686018427387904",
    "1" * 5000, "a", "x" * 5000, "\x00", "\x1b[31m\r\n\x07", "\udcff", "é", "--", "[1, 2]", "a=nan", ",", "[",
    "/nowhere/at/all", "log.parquet",
)  # fmt: skip

DEEP = ("1e300", "5e-324", "4611686018427387904", "x\x1b[31m\r\n", "'; DROP TABLE log; --", "é" * 300)
"""Those that some option may take, and a verb then works with."""

BASE: dict[str, tuple[str, ...]] = {
    "check": ("LOG",),
    "count": ("LOG", "--out", "counts"),
    "fit": ("LOG", "--model", "naive"),
    "repair": ("LOG", "--method", "merge"),
    "audit": ("--log", "LOG", "--fit", "fit"),
    "judge": ("fit", "--format", "quepid", "--out", "ratings.csv"),
    "report": ("LOG", "--out", "page.html"),
    "convert": ("LOG", "--from", "sessions", "--out", "converted.parquet"),
    "train": ("LOG", "--features", "nowhere.txt", "--learner", "naive", "--model", "lightgbm", "--out", "ranker"),
    "rank": ("fit", "--features", "LOG", "--out", "scores.parquet"),
    "export": ("fit", "--out", "ranker.onnx"),
    "simulate": ("--data", "LETOR", "--sessions", "5", "--out", "simulated.parquet"),
    "value": ("LOG", "--fit", "fit", "--ranking", "nowhere.csv"),
    "watch": ("LOG",),
    "sql": ("clicks", "--dialect", "duckdb"),
    "reproduce": ("no-such-table",),
    "explain": ("thin_factors",),
    "demo": (),
}
"""A call of each verb, to which the option is added. LOG and LETOR are there only for what is to be worked with."""

LONG = {("demo", "out")}
"""What would run for long where the value is one that it can take."""

REFUSED = ("", "\x00", "\udcff", "log.parquet")
"""And so gets only these."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small log of each kind, a fit, documents with grades; the working folder."""
    made, before = tmp_path_factory.mktemp("hostile"), Path.cwd()
    os.chdir(made)
    rows = [(q, d, p, int((q + d + p) % 3 == 0)) for q in range(3) for d in range(3) for p in (1, 2, 3)]
    columns = dict(zip(("query_id", "doc_id", "position", "click"), zip(*rows, strict=True), strict=True))
    log = pa.table({**columns, "session_id": list(range(len(rows)))})
    pq.write_table(log, "log.parquet")
    pq.write_table(log.set_column(1, "doc_id", pa.array([10 * d + p for _, d, p, _ in rows])), "broken.parquet")
    pq.write_table(pa.table({"query_doc_ids": [[1, 2]], "clicks": [[0, 1]]}), "pages.parquet")
    letor = "".join(f"{d % 3} qid:{q} 1:0.{d} 2:{q}\n" for q in range(3) for d in range(4))
    Path("data.txt").write_text(letor)
    assert call("fit", "log.parquet", "--model", "naive", "--out", "fit").exit_code == 0
    yield made
    os.chdir(before)


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="elute")


def require_a_proper_end(result: Result, words: tuple[str, ...]) -> None:
    said = (words, result.stderr[-500:])
    cause = result.exception.__cause__ if isinstance(result.exception, SystemExit) else result.exception
    assert cause is None or isinstance(cause, EluteError | OSError), (words, cause)
    assert result.exit_code in (0, 1, 2, 3), said
    assert "Traceback" not in result.stderr, said
    assert "not foreseen" not in result.stderr, said
    assert "\x1b" not in result.stderr, said
    if result.exit_code == 1:
        assert result.stderr.splitlines()[-1].startswith("elute: "), said
        assert sum(not line.startswith("elute: compiling") for line in result.stderr.splitlines()) == 1, said
    if result.exit_code == 2:
        assert result.stderr.splitlines()[-1].startswith("Error: "), said


def options(verb: str) -> list[click.Parameter]:
    return [one for one in main.commands[verb].params if not getattr(one, "is_flag", False)]


EVERY = [
    (verb, str(option.name))
    for verb in sorted(VERBS)
    for option in options(verb)
    if verb == "check" or option.name not in DEFAULTS
]
"""How to read a log is the same for all verbs, and tried with one."""


def spell(verb: str, name: str, value: str, log: str, letor: str) -> tuple[str, ...]:
    """A command with the option, or in place of the argument."""
    option = next(one for one in options(verb) if one.name == name)
    base = [{"LOG": log, "LETOR": letor}.get(word, word) for word in BASE[verb]]
    if not isinstance(option, click.Argument):
        return (verb, *base, option.opts[0], value)
    return (verb, *(base if not base or base[0].startswith("-") else base[1:]), "--", value)


@pytest.fixture
def no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """No log can be opened, which takes longer than all the rest."""

    def refuse(source: object, **_: object) -> None:
        raise EluteError(f"no file '{source}'")

    monkeypatch.setattr("elute.log.read_log", refuse)


@pytest.mark.parametrize(("verb", "name"), EVERY)
def test_hostile_values(verb: str, name: str, folder: Path, no_log: None) -> None:
    for value in REFUSED if (verb, name) in LONG else HOSTILE:
        words = spell(verb, name, value, "nowhere.parquet", "nowhere.txt")
        require_a_proper_end(call(*words), words)


@pytest.mark.parametrize(("verb", "name"), [one for one in EVERY if one not in LONG])
def test_hostile_values_that_a_verb_works_with(verb: str, name: str, folder: Path) -> None:
    for value in DEEP:
        words = spell(verb, name, value, "log.parquet", "data.txt")
        require_a_proper_end(call(*words), words)


def test_every_verb_is_tried() -> None:
    assert set(BASE) == set(VERBS)


def test_what_is_refused_is_refused_before_anything_is_read_or_deleted(folder: Path) -> None:
    """The log is not there: it would be missed, had it been looked for."""
    for words in (
        ("check", "nowhere", "--seed", "-1"),
        ("fit", "nowhere", "--tolerance", "nan"),
        ("repair", "nowhere", "--method", "swap", "--budget", "1" + "0" * 20),
        ("repair", "nowhere", "--method", "swap", "--target-se", "1e300"),
        ("repair", "nowhere", "--method", "merge", "--weights", "position=nan"),
        ("train", "nowhere", "--features", "nowhere", "--out", "ranker", "--rate", "inf"),
        ("simulate", "--data", "nowhere", "--out", "x", "--width", "0"),
        ("judge", "fit", "--format", "trec", "--out", "x", "--min-precision", "0"),
    ):
        done = call(*words)
        assert done.exit_code == 2
        assert "; give " in done.stderr


def test_what_was_typed_cannot_break_the_line(folder: Path) -> None:
    done = call("check", "log.parquet", "--no\x1b[31m\nsuch")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "Error: No such option '--no\\x1b[31m\\nsuch'."


def test_what_is_missing_is_listed_as_before(folder: Path) -> None:
    assert "Choose from:\n\tquepid" in call("judge", "fit", "--out", "x").stderr

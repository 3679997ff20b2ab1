"""What nobody foresaw, and what machines do: one line with a code, exit code 1, and the rest with --debug."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import elute
from elute.cli import main
from elute.errors import EluteError


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `elute explain` where it fails with an error."""

    def run(error: BaseException, *words: str) -> Result:
        @click.command()
        def explain() -> None:
            raise error

        monkeypatch.setattr("elute.cli.verbs.explain.explain", explain)
        return CliRunner().invoke(main, ["explain", *words], prog_name="elute")

    return run


ERRORS: list[tuple[BaseException, int, str]] = [
    (
        ValueError("no\nway"),
        1,
        r"this was not foreseen \(ValueError at .*, elute .*\): no\\nway; --debug shows the rest",
    ),
    (RecursionError("too deep"), 1, r"not foreseen \(RecursionError.*too deep"),
    (KeyError("x"), 1, r"not foreseen \(KeyError"),
    (AssertionError(), 1, r"not foreseen \(AssertionError.*: AssertionError;"),
    (EOFError("no data left"), 1, r"not foreseen \(EOFError.*no data left"),
    (MemoryError(), 1, r"out of memory \(MemoryError\); give it more.*--memory"),
    (OSError(errno.ENOSPC, "No space left on device", "x.parquet"), 1, "no space left on the disk for x.parquet"),
    (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), 1, "Connection reset by peer"),
    (EluteError("give `seed=`"), 1, "give --seed"),
    (elute.NotRecoverable(2), 3, "2 components"),
    (KeyboardInterrupt(), 130, "^elute: interrupted$"),
]


@pytest.mark.parametrize(("error", "code", "says"), ERRORS, ids=lambda value: type(value).__name__)
def test_one_line_and_an_exit_code(error: BaseException, code: int, says: str, failing: Callable[..., Result]) -> None:
    done = failing(error)
    assert done.exit_code == code
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert re.search(says, done.stderr.strip())


def test_debug_shows_the_rest(failing: Callable[..., Result]) -> None:
    done = failing(ValueError("no way"), "--debug")
    assert done.exit_code == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("elute: this was not foreseen (ValueError")
    before = CliRunner().invoke(main, ["--debug", "explain"], prog_name="elute")
    assert "Traceback" in before.stderr


def test_the_code_names_the_last_line_of_elute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elute.results.explanations.get_close_matches", lambda *_, **__: 1 / 0)
    done = CliRunner().invoke(main, ["explain", "nonsense"], prog_name="elute")
    assert done.exit_code == 1
    assert re.search(r"\(ZeroDivisionError at results/explanations\.py:\d+, elute \d", done.stderr)


def start(*words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "elute", *words]
    return subprocess.run(command, capture_output=True, env={**os.environ, **variables}, check=False)


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    plain = start("explain", PYTHONIOENCODING="ascii")
    assert plain.returncode == 0
    assert plain.stdout.isascii()
    assert plain.stdout
    wrong = start("check", str(tmp_path / "nöwhere…"), PYTHONIOENCODING="ascii")
    assert wrong.returncode == 1
    assert wrong.stderr.count(b"\n") == 1
    assert b"n\\xf6where..." in wrong.stderr


def test_json_reads_back_whatever_the_terminal(tmp_path: Path) -> None:
    pq.write_table(pa.table({"query_doc_ids": [[1, 2]], "clicks": [[0, 1]]}), tmp_path / "pages.parquet")
    words = ("convert", str(tmp_path / "pages.parquet"), "--from", "sessions", "--out", str(tmp_path / "lög….parquet"))
    printed = [start(*words, "--json", PYTHONIOENCODING=one).stdout for one in ("ascii", "utf-8")]
    assert printed[0].isascii()
    assert not printed[1].isascii()
    assert json.loads(printed[0]) == json.loads(printed[1])
    assert json.loads(printed[0])["log"].endswith("lög….parquet")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "elute", "explain"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"elute: no space left on the disk; free some, or write elsewhere\n"


def test_a_reader_that_goes_away() -> None:
    command = f"{sys.executable} -m elute explain | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.stderr == b""


@pytest.mark.parametrize(
    "name",
    ["postgres:/u:hidden@h", "postgres:u:hidden@h", "https:/u:hidden@h/x", "postgres://h:1/db?pass%77ord=hidden#t"],
)
def test_no_password_is_shown(name: str) -> None:
    done = CliRunner().invoke(main, ["check", name], prog_name="elute")
    assert done.exit_code == 1
    assert "hidden" not in done.output

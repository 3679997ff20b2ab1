"""The line that says that kernels are being compiled: when they are, and only then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from elute.cli.kernels import announce_compiling

LINE = "elute: compiling kernels"


def test_it_is_said_once_and_then_not_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "log.csv").write_text("query_id,doc_id,position,click\nq,a,1,1\nq,a,2,0\nq,b,1,0\n")
    command = [sys.executable, "-m", "elute", "check", "log.csv", "--json"]
    first, second = (subprocess.run(command, cwd=tmp_path, capture_output=True, text=True) for _ in range(2))
    assert first.stderr.count(LINE) == 1
    assert LINE not in second.stderr
    assert json.loads(first.stdout) == json.loads(second.stdout)


def test_it_is_not_said_before_there_is_something_to_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "elute", "check", "missing.parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert LINE not in done.stderr


def test_only_the_command_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    import numba

    for _ in ("kernels are imported within it", "kernels were imported before"):
        with announce_compiling():
            import elute.kernels.jit  # noqa: F401

            numba.njit(lambda x: x + 1)(1)
            numba.njit(lambda x: x + 2)(1)
        assert capsys.readouterr().err.count(LINE) == 1
        numba.njit(lambda x: x + 3)(1)
        assert capsys.readouterr().err == ""
    assert not any(type(finder).__module__ == announce_compiling.__module__ for finder in sys.meta_path)

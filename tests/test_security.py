"""What docs/security.md says that elute never does, and who can read what it leaves on disk."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import elute
from elute._util import scratch
from elute._util.npz import write_npz
from elute.engines.duckdb.connection import connect
from elute.training.folder import load_ranker

SOURCES = Path(elute.__file__).parent
RUNS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "subprocess", "socket", "ctypes", "runpy", "code"}
"""Modules that run or load what they are given, or reach out."""


def walk() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield str(path.relative_to(SOURCES)), node


def test_nothing_runs_what_a_file_holds() -> None:
    """The one exception sends answers between Spark's workers and the driver."""
    imported, called = set(), set()
    for file, node in walk():
        if isinstance(node, ast.Import):
            imported |= {(file, name.name.partition(".")[0]) for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add((file, node.module.partition(".")[0]))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            called.add((file, ast.unparse(node.func)))
            assert name not in ("eval", "exec", "__import__", "system", "popen", "compile_command"), file
    assert {(file, name) for file, name in imported if name in RUNS} == {
        ("engines/spark/blocks.py", "pickle"),
        ("cli/ending.py", "socket"),  # a pair within the process, by which a thread hears of signals
    }
    assert not [file for file, name in called if name == "np.load"]  # archives are read by `elute.door`
    assert {file for file, name in called if name == "duckdb.connect"} == {"engines/duckdb/connection.py"}


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "went off"),)

    np.savez(tmp_path / "ranker.npz", weight_0=np.array([Bomb()], object))
    with pytest.raises(elute.EluteError, match="is not a ranker that elute wrote"):
        load_ranker(tmp_path, {"features": ["a"], "key": ["doc_id"], "model": "mlp"})
    with pytest.raises(TypeError, match="holds Python objects"):
        write_npz(tmp_path / "a.npz", {"a": np.array([Bomb()], object)})
    assert not (tmp_path / "went off").exists()


def test_duckdb_fetches_no_extension() -> None:
    with connect() as connection:
        for setting in ("autoinstall_known_extensions", "allow_unsigned_extensions"):
            assert connection.execute(f"SELECT current_setting('{setting}')").fetchall() == [(False,)]


def test_what_is_spilled_is_private(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with scratch.open_folder(tmp_path) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (tmp_path / "log.csv").write_text("query_id,doc_id,position,click\nq,a,1,1\nq,a,2,0\nq,b,1,0\n")
        with elute.read_log(tmp_path / "log.csv", spill=tmp_path):
            (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert (folder / "log.duckdb").exists()
    finally:
        os.umask(umask)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_windows_is_told_at_once() -> None:
    script = "import os; os.name = 'nt'; import elute"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: elute runs on Linux and macOS; on Windows, use it in the Windows Subsystem for Linux (WSL)"
    )

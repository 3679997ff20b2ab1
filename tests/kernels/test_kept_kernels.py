"""Kernels where numba has no place for its cache: neither beside the source nor in a home folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
from numba.core import event
from elute.kernels.jit import describe_fallback, jit

@jit
def add(a, b):
    return a + b

class Compiled(event.Listener):
    def on_start(self, event): print("compiled")
    def on_end(self, event): pass

with event.install_listener("numba:compile", Compiled()):
    print(add(2, 3))
print(describe_fallback())
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A file with a kernel, in a folder that holds no cache."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "__pycache__").write_text("not a folder")  # nor can root write here
    (tmp_path / "temporary").mkdir()
    return tmp_path / "kernel.py"


def run(kernel: Path, temporary: Path) -> list[str]:
    homeless = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(temporary)}
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run([sys.executable, kernel], env=kept | homeless, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_they_are_kept_in_a_private_folder(kernel: Path) -> None:
    temporary = kernel.parent / "temporary"
    first, second = run(kernel, temporary), run(kernel, temporary)
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    said = f"kernels are kept in {folder}: neither the install nor the home folder can be written to; "
    assert first == ["compiled", "5", said + "NUMBA_CACHE_DIR names another"]
    assert second == first[1:]


def test_a_folder_that_others_can_write_to_is_not_trusted(kernel: Path) -> None:
    temporary = kernel.parent / "temporary"
    run(kernel, temporary)
    (folder,) = temporary.iterdir()
    folder.chmod(0o777)
    for _ in range(2):
        assert [line[:20] for line in run(kernel, temporary)] == ["compiled", "5", "kernels are not kept"]
    for cached in sorted(folder.rglob("*"), reverse=True):
        cached.rmdir() if cached.is_dir() else cached.unlink()
    folder.rmdir()
    elsewhere = kernel.parent / "elsewhere"
    elsewhere.mkdir(0o700)
    folder.symlink_to(elsewhere)
    assert run(kernel, temporary)[2].startswith("kernels are not kept")
    assert not list(elsewhere.iterdir())

"""What the neural learners need to be installed, and what not."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("missing", ["jax", "optax"])
def test_without_jax_the_error_says_what_to_install(missing: str) -> None:
    done = run(WITHOUT.format(names=[missing]) + "import elute.neural.train")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"elute.errors.EluteError: the neural learners need {missing}, which is not installed; "
        'run: pip install "elute[neural]"'
    )


def test_everything_imports_with_numpy_jax_and_optax_alone() -> None:
    code = WITHOUT.format(names=["duckdb", "pyarrow", "numba", "rich", "click"]) + (
        "import pkgutil, importlib, elute.neural as home\n"
        "found = [m.name for m in pkgutil.walk_packages(home.__path__, 'elute.neural.')]\n"
        "for name in found: importlib.import_module(name)\n"
        "print(len(found))"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 25

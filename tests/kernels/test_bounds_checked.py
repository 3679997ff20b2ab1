"""Kernels with numba's bounds checks on: compiled anew, into a cache of their own, and run over a log from the first
verb to the last that uses them. Without the checks a kernel that reads beside its arrays would go unseen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from elute.simulation import toy

ROOT = Path(__file__).resolve().parents[2]

_BESIDE = """
import numba
import numpy as np

@numba.njit
def beside(values, at):
    return values[at]

try:
    beside(np.zeros(3), 3)
except IndexError:
    print("seen")
"""


@pytest.fixture(scope="module")
def checked(pytestconfig: pytest.Config) -> dict[str, str]:
    """The environment of a process with bounds checks; its compiled kernels are kept from run to run."""
    place = pytestconfig.cache.mkdir("bounds-checked") if pytestconfig.cache else ROOT / ".bounds"
    return os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(place)}


def run(checked: dict[str, str], *words: str) -> str:
    done = subprocess.run([sys.executable, *words], env=checked, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def test_the_checks_are_on(checked: dict[str, str]) -> None:
    assert run(checked, "-c", _BESIDE) == "seen\n"


def test_no_kernel_reads_beside_its_arrays(checked: dict[str, str], tmp_path: Path) -> None:
    """The same answers with the checks as without."""
    log = tmp_path / "log.parquet"
    pq.write_table(toy.simulate(1500, 20, broken=True, seed=7), log)
    expected = json.loads(run(dict(os.environ), "-m", "elute", "check", str(log), "--precision", "--json"))
    assert json.loads(run(checked, "-m", "elute", "check", str(log), "--precision", "--json")) == expected
    run(checked, "-m", "elute", "count", str(log), "--out", str(tmp_path / "counts"))
    assert (
        json.loads(run(checked, "-m", "elute", "check", str(tmp_path / "counts"), "--precision", "--json")) == expected
    )
    for command in (
        ("fit", str(tmp_path / "counts"), "--allow-unidentified", "--out", str(tmp_path / "fit")),
        ("repair", str(log), "--method", "merge", "--out", str(tmp_path / "merge.json")),
        ("repair", str(log), "--method", "swap", "--out", str(tmp_path / "swap.json")),
        ("judge", str(tmp_path / "fit"), "--format", "quepid", "--out", str(tmp_path / "ratings.csv")),
    ):
        run(checked, "-m", "elute", *command)

"""Spark with a master and two workers in processes of their own, one of them killed on the way: the same answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.xdist_group("spark")
def test_a_standalone_cluster_whose_worker_is_killed(tmp_path: Path) -> None:
    """A master and two workers, processes of their own; elute comes to the executors in an archive."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    environment = {**os.environ, "BENCH_ROWS": "50000", "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src")))}
    command = [sys.executable, "-m", "benchmarks.cluster"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["same"] is True
    assert said["killed"] is True
    assert said["fit_apart"] < 1e-3

"""What tests share: small logs, the command line, and real data where it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data; see ELUTE_DATA in the README."""
    folder = os.environ.get("ELUTE_DATA")
    if not folder:
        pytest.skip("ELUTE_DATA is not set: no real data to test on")
    return Path(folder)


@pytest.fixture(scope="module")
def quick_compiling() -> Iterator[None]:
    """Code from jax compiled with few optimisations: on small arrays, compiling is what takes time."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def spark() -> Iterator[None]:
    """A small Spark of its own, which `engine="spark"` then finds."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[2]")
        for setting, value in settings.items():
            builder = builder.config(setting, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield
    session.stop()


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


def run_elute(*arguments: object, cwd: Path | None = None) -> Outcome:
    """Run the command line in a process of its own, as a user does."""
    command = [sys.executable, "-c", "from elute.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


CHAIN = {
    "query_id": ["q1", "q1", "q1", "q2", "q2", "q3"],
    "doc_id": ["a", "a", "b", "c", "c", "d"],
    "position": [1, 2, 1, 3, 4, 5],
    "click": [1, 0, 0, 1, 1, 0],
}
"""Positions 1–2 linked by (q1, a), 3–4 by (q2, c), 5 alone: three components, every query rankable."""


@pytest.fixture
def chain() -> pa.Table:
    return pa.table(CHAIN)

"""What tests share: small logs, the command line, and real data where it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import settings

from elute.errors import EluteError

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")
"""On small arrays jax mostly compiles, and it compiles in less than half the time so. To be set before jax starts."""

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
"""An example may take its time: on a busy machine any can take longer than hypothesis allows by itself."""


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())
"""What `make test-fast` leaves out: tests, and whole modules whose fixtures are slow (see `tests/seconds.py`)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow. What has no group of its own goes with its file: what a file's tests share is made once."""
    for item in items:
        module, _, name = item.nodeid.partition("::")
        if module in SLOW or f"{module}::{name.partition('[')[0]}" in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(module))


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: some tests wait, for a server, for Spark, for a command."""
    return len(os.sched_getaffinity(0)) + 1


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
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    options["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a short run: compile little
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[2]")
        for option, value in options.items():
            builder = builder.config(option, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield
    session.stop()


@pytest.fixture(scope="session")
def demo_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sound and the broken log of `elute demo`, without the steps that follow; only to be read."""
    from elute._util.files import write_parquet
    from elute.simulation import toy

    folder = tmp_path_factory.mktemp("demo-logs")
    for name in ("sound", "broken"):
        write_parquet(folder / f"{name}.parquet", toy.simulate(20_000, 120, broken=name == "broken", seed=7))
    return folder


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `elute demo --out demo` leaves, and what it printed; only to be read. Tests with it are of one group, so
    that it runs once."""
    folder = tmp_path_factory.mktemp("demo-folder")
    outcome = run_elute("demo", "--out", "demo", cwd=folder)
    assert outcome.code == 0, outcome.err
    (folder / "printed.txt").write_text(outcome.out, encoding="utf-8")
    return folder


@pytest.fixture
def lone_positions(tmp_path: Path) -> Path:
    """Five positions with items of their own: whatever connects them merges them all."""
    position = np.repeat(np.arange(1, 6), 40)
    doc, click = position * 100 + np.arange(200) % 8, (np.arange(200) % 3 == 0).astype(int)
    table = pa.table({"query_id": doc % 3, "doc_id": doc, "position": position, "click": click})
    pq.write_table(table, tmp_path / "lone.parquet")
    return tmp_path / "lone.parquet"


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
    """Run the command line in a process of its own, as a user does, with jax as it is by default."""
    command = [sys.executable, "-c", "from elute.cli import main; main()", *map(str, arguments)]
    variables = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=variables, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def call_elute(*arguments: object, cwd: Path | None = None) -> Outcome:
    """Run the command line within this process: in one of its own, most calls would mostly import. What is not an error
    of the user's is raised, with its traceback."""
    from elute.cli import main

    with chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="elute")
    error = done.exception.__cause__ if isinstance(done.exception, SystemExit) else done.exception
    if error is not None and not isinstance(error, (EluteError, OSError)):
        raise error
    return Outcome(done.exit_code, done.stdout, done.stderr)


CHAIN: dict[str, list[Any]] = {
    "query_id": ["q1", "q1", "q1", "q2", "q2", "q3"],
    "doc_id": ["a", "a", "b", "c", "c", "d"],
    "position": [1, 2, 1, 3, 4, 5],
    "click": [1, 0, 0, 1, 1, 0],
}
"""Positions 1–2 linked by (q1, a), 3–4 by (q2, c), 5 alone: three components, every query rankable."""


@pytest.fixture
def chain() -> pa.Table:
    return pa.table(CHAIN)

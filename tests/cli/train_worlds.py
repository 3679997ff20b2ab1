"""A small world for tests of training: clicks that a linear ranker can explain, and a policy that misleads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from conftest import Outcome
from elute.cli import main

QUERIES, DOCUMENTS, FEATURES = 40, 8, 4
RELEVANT, MISLEADING = 0, 3
"""The feature that decides grades, and the one that the logging policy ranks by."""


@pytest.fixture(autouse=True, scope="module")
def compiled_with_little_optimisation() -> Iterator[None]:
    """For a module that imports this: tests compile much and compute little."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def elute(*arguments: object) -> Outcome:
    """The command line within this process, as JAX is slow to import."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Outcome(done.exit_code, done.stdout, done.stderr)


def refused(done: Outcome, message: str) -> None:
    """One line says why, after the lines on progress that a slow machine prints."""
    lines = [line for line in done.err.splitlines() if not re.fullmatch(r"elute: [^;]*\(\d+%\)|elute: [a-z ]+", line)]
    assert (done.code, len(lines)) == (1, 1), done.err
    assert message in lines[0]


def documents(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features and grades, query after query. Features run over orders of magnitude, as real ones do."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(QUERIES * DOCUMENTS, FEATURES))
    grades = np.clip(np.round(1.2 + 1.2 * x[:, RELEVANT] + 0.3 * rng.normal(size=len(x))), 0, 4)
    return np.sign(x) * np.expm1(np.abs(x)) * [1, 1, 1000, 1], grades.astype(int)


def write_world(folder: Path, sessions: int = 6_000) -> None:
    """LETOR and Parquet files of the same documents, and a log whose policy ranks by the misleading feature."""
    x, grades = documents()
    names = [(f"q{row // DOCUMENTS}", f"d{row}") for row in range(len(x))]
    lines = (
        f"{grade} qid:{query} {' '.join(f'{i + 1}:{v:.6g}' for i, v in enumerate(row))} # docid = {name}\n"
        for grade, row, (query, name) in zip(grades, x, names, strict=True)
    )
    (folder / "letor.txt").write_text("".join(lines))
    queries, docs = (pa.array(column) for column in zip(*names, strict=True))
    ids: dict[str, Any] = {"query_id": queries, "doc_id": docs}
    columns = {f"feature_{i + 1}": [float(f"{v:.6g}") for v in x[:, i]] for i in range(FEATURES)}
    pq.write_table(pa.table({**ids, **columns}), folder / "features.parquet")
    pq.write_table(pa.table({**ids, **columns, "grade": grades}), folder / "judged.parquet")
    score = np.sign(x[:, MISLEADING]) * np.log1p(np.abs(x[:, MISLEADING]))
    pq.write_table(pa.table({**ids, "score": score}), folder / "policy.parquet")
    simulated = ("--data", folder / "letor.txt", "--sessions", sessions, "--width", DOCUMENTS)
    clicks = ("--user-setting", "propensities=1/k", "--seed", 5)
    policy = ("--policy", "scores", "--scores", folder / "policy.parquet", "--policy-setting", "temperature=0.5")
    assert elute("simulate", *simulated, *clicks, *policy, "--out", folder / "log.parquet").code == 0
    assert elute("simulate", *simulated, *clicks, "--policy", "uniform", "--out", folder / "random.parquet").code == 0

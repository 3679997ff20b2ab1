"""What tests share: small logs, the command line, and real data where it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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

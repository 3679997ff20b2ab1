"""A log that does not fit into memory is read by partition, without being asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from elute.engines.partitioned import choice
from elute.engines.partitioned.engine import LEAST, OutOfCoreEngine


def test_large_files_are_read_by_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3_000
    rows = {"query_id": [i % 40 for i in range(n)], "doc_id": [i % 70 for i in range(n)]}
    rows |= {"position": [i % 7 for i in range(n)], "click": [int(i % 3 == 0) for i in range(n)]}
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows), path)
    with elute.read_log(path) as log:
        assert not isinstance(log.engine, OutOfCoreEngine)
        known = elute.check(log).to_dict()
    monkeypatch.setattr(choice, "BYTES_A_ROW", LEAST)
    monkeypatch.setattr(choice, "available_memory", lambda: 2 * LEAST)
    with elute.read_log(path) as log:
        assert isinstance(log.engine, OutOfCoreEngine)
        assert elute.check(log).to_dict() == known
    assert not isinstance(elute.read_log(pa.table(rows)).engine, OutOfCoreEngine)

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


def test_more_factors_than_fit_are_refused_with_what_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log and of its counts; without a limit they are counted."""
    rows = {"query_id": [1] * 40, "doc_id": list(range(40)), "position": list(range(40)), "click": [0] * 40}
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows), path)
    with elute.read_log(path) as log:
        log.save_counts(tmp_path / "counts")
    monkeypatch.setattr("elute.engines.partitioned.engine.BYTES_A_FACTOR", LEAST // 40)
    for source in (path, tmp_path / "counts"):
        with (
            pytest.raises(
                elute.EluteError, match=r"`memory=`: 40 factors take about 768MB by themselves; allow as much"
            ),
            elute.read_log(source, memory=LEAST) as log,
        ):
            elute.check(log)
        with elute.read_log(source, memory=2 * LEAST) as log:
            assert elute.check(log).to_dict()["factors"] == 40

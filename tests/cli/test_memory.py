"""`--memory` and `--spill`: the same answer from less memory, and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import call_elute
from elute.cli.types import MemoryType
from elute.engines.partitioned import engine


def test_sizes_are_read_as_people_write_them() -> None:
    written = ["2GB", "512 mb", "1.5GiB", "300000000", "64k"]
    sizes = [MemoryType().convert(size, None, None) for size in written]
    assert sizes == [2 << 30, 512 << 20, 3 << 29, 300_000_000, 64 << 10]
    assert [str(size) for size in sizes] == written  # as the next command is printed with it


@pytest.mark.parametrize(
    ("size", "code", "says"), [("plenty", 2, "not an amount of memory"), ("10MB", 1, "too little")]
)
def test_what_cannot_be_kept_to_is_refused(tmp_path: Path, size: str, code: int, says: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("query_id,doc_id,position,click\nq,d,1,0\n")
    refused = call_elute("check", log, "--memory", size)
    assert refused.code == code
    assert says in refused.err


def test_the_same_answer_and_an_empty_folder_afterwards(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, spill = data / "yandex" / "train.parquet", tmp_path / "spill"
    spill.mkdir()
    limited = call_elute("check", log, "--memory", "512MB", "--spill", spill, "--json")
    assert limited.out == call_elute("check", log, "--json").out
    fits = [tmp_path / "one", tmp_path / "two"]
    monkeypatch.setattr(engine, "BYTES_A_ROW", 4_000)  # several partitions
    assert call_elute("fit", log, "--memory", "512MB", "--spill", spill, "--out", fits[0]).code == 0
    assert call_elute("fit", log, "--out", fits[1]).code == 0
    for name, by in (("propensities", ["position"]), ("relevance", ["query_id", "doc_id"])):
        one, other = (
            pq.read_table(fit / f"{name}.parquet").sort_by([(column, "ascending") for column in by]) for fit in fits
        )
        assert one.schema == other.schema
        for column in one.column_names:
            if pa.types.is_floating(one[column].type):
                np.testing.assert_allclose(one[column].to_numpy(), other[column].to_numpy(), rtol=1e-6, err_msg=column)
            else:
                assert one[column].equals(other[column])
    assert list(spill.iterdir()) == []


def test_counts_that_are_refused_leave_no_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, spill = tmp_path / "log.csv", tmp_path / "spill"
    spill.mkdir()
    log.write_text("query_id,doc_id,position,click\nq,d,1,0\n")
    assert call_elute("count", log, "--out", tmp_path / "counts").code == 0
    for wrong in (("--memory", "10MB"), ("--memory", "512MB", "--bias", "other")):
        assert call_elute("check", tmp_path / "counts", "--spill", spill, *wrong).code == 1
        assert list(spill.iterdir()) == []


def test_a_folder_that_cannot_be_written_to(data: Path, tmp_path: Path) -> None:
    refused = call_elute("check", data / "yandex" / "test.parquet", "--spill", tmp_path / "missing")
    assert refused.code == 1
    assert "cannot write to" in refused.err


def test_a_full_disk_leaves_no_half_written_result(data: Path, tmp_path: Path) -> None:
    """Files may grow to 16 KiB only, which stands for a disk without room; a second run starts cleanly."""
    log, out, spill = data / "yandex" / "train.parquet", tmp_path / "fit", tmp_path / "spill"
    spill.mkdir()
    command = [sys.executable, "-c", "from elute.cli import main; main()", "fit", log, "--memory", "512MB"]
    words = [*map(str, command), "--spill", str(spill), "--out", str(out)]
    full = ["sh", "-c", 'ulimit -f 32; exec "$@"', "sh", *words]
    failed = subprocess.run(full, capture_output=True, text=True, check=False)
    assert failed.returncode == 1, failed.stderr
    assert "Traceback" not in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("elute: ")
    assert not (out / "fit.json").exists()  # which marks a fit as whole: others refuse what is left
    assert call_elute("judge", out, "--format", "quepid", "--out", tmp_path / "judged.csv").code in (1, 2)
    assert list(spill.iterdir()) == []
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0

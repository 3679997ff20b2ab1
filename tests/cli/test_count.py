"""`elute count`, and the folder it writes in a log's place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import CHAIN, call_elute, run_elute


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({**CHAIN, "device": ["x", "x", "y", "y", "x", "x"]}), path)
    return path


def test_every_verb_takes_the_counts(log: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    said = run_elute("count", log, "--bias", "position,device", "--out", counts, "--json")
    assert said.code == 0
    assert said.json["cells"] == 6
    direct = call_elute("check", log, "--bias", "position,device", "--explore", "--json")
    again = call_elute("check", counts, "--explore", "--json")
    assert again.out == direct.out
    assert again.code == direct.code == 3
    plans = [tmp_path / "one.json", tmp_path / "two.json"]
    for source, options, plan in ((log, ("--bias", "position,device"), plans[0]), (counts, (), plans[1])):
        assert call_elute("repair", source, *options, "--method", "merge", "--out", plan).code == 0
    assert json.loads(plans[0].read_text())["pairs"] == json.loads(plans[1].read_text())["pairs"]
    refused = call_elute("fit", counts, "--plan", plans[1])
    assert refused.code == 3 and "not estimable" in refused.err  # eight rows: clicks do not tie what items link
    fitted = call_elute("fit", counts, "--plan", plans[1], "--allow-unidentified", "--out", tmp_path / "fit")
    assert fitted.code == 0, fitted.err
    assert pq.read_table(tmp_path / "fit" / "relevance.parquet").num_rows == 4


def test_counts_are_refused_when_the_log_has_changed(log: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    call_elute("count", log, "--out", counts)
    stamp = log.stat()
    pq.write_table(pq.read_table(log).slice(0, 5), log)
    refused = call_elute("check", counts)
    assert refused.code == 1
    assert f"{log} has changed since it was counted" in refused.err
    os.utime(log, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # the size still tells
    assert call_elute("check", counts).code == 1
    log.unlink()
    assert call_elute("check", counts).code == 3  # the log is out of reach: its counts are taken as they are


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--bias", "device"), "made with bias position, not device"),
        (("--item", "doc_id"), "made with item query_id, doc_id, not doc_id"),
        (("--impressions", "click"), "made with impressions nothing, not click"),
    ],
)
def test_other_columns_need_another_count(log: Path, tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    counts = tmp_path / "counts"
    call_elute("count", log, "--out", counts)
    refused = call_elute("check", counts, *options)
    assert refused.code == 1
    assert says in refused.err or "no column" in refused.err
    assert "Traceback" not in refused.err


def test_a_folder_that_holds_something_else_is_left_alone(log: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear")
    refused = call_elute("count", log, "--out", tmp_path / "mine")
    assert refused.code == 1
    assert "already exists and is not a counts folder" in refused.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["diary.txt"]


def test_a_folder_without_its_last_file_is_no_counts(log: Path, tmp_path: Path) -> None:
    """As an interrupted run leaves it; a second run writes over it."""
    counts = tmp_path / "counts"
    call_elute("count", log, "--out", counts)
    (counts / "counts.json").unlink()
    refused = call_elute("check", counts)
    assert refused.code == 1
    call_elute("count", log, "--out", tmp_path / "fresh")
    (tmp_path / "fresh" / "cells.parquet").write_bytes(b"PAR1")
    broken = call_elute("check", tmp_path / "fresh")
    assert broken.code == 1
    assert "count the log again" in broken.err


def test_a_log_of_one_query_column_only(tmp_path: Path) -> None:
    """Items that do not tell their query keep the pairs of both."""
    path = tmp_path / "log.csv"
    path.write_text("query_id,doc_id,position,click\nq1,7,1,0\nq2,7,2,1\nq2,007,2,0\n")
    counts = tmp_path / "counts"
    assert call_elute("count", path, "--item", "doc_id", "--out", counts).code == 0
    direct = call_elute("check", path, "--item", "doc_id", "--json")
    again = call_elute("check", counts, "--json").json
    assert "counts do not tell" in again["precision"]["notes"][0]  # clusters, of which only the log has the rows
    assert {**again, "precision": None} == {**direct.json, "precision": None}

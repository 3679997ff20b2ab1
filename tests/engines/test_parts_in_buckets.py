"""Counts written to an object store: the same as on disk, with two writers at once and with killed ones."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_server import ACCESS, Served, serving, with_keys

import elute
from conftest import call_elute
from elute.engines.buckets import bucket as buckets
from elute.engines.parts import adding
from elute.errors import EluteError
from elute.verbs.counting.count import Counted

PLACE = "s3://lake/counts"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with serving(s3=True) as served:
        with_keys(monkeypatch, served)
        yield served


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Most items are shown once."""
    paths = [tmp_path_factory.mktemp("days") / f"{day}.parquet" for day in range(6)]
    for seed, path in enumerate(paths):
        rng, rows = np.random.default_rng(seed), 600
        doc = np.where(rng.random(rows) < 0.5, rng.integers(10**9, size=rows), rng.integers(60, size=rows))
        position = np.clip(1 + doc % 6 + rng.integers(-1, 2, size=rows), 1, 6)
        click = (rng.random(rows) < 0.4 / position).astype(np.int8)
        pq.write_table(pa.table({"query_id": doc // 9, "doc_id": doc, "position": position, "click": click}), path)
    return paths


def check(source: object, **window: Any) -> dict[str, Any]:
    return json.loads(elute.check(source, **window).to_json())


def append(day: Path, **given: Any) -> Counted:
    return elute.count(day, PLACE, append=True, key=f"day={day.stem}", **given)


def read_index(served: Served) -> dict[str, Any]:
    return json.loads(served.files["/lake/counts/parts.json"])


def list_parts(served: Served) -> set[str]:
    return {path.split("/")[4] for path in served.files if path.startswith("/lake/counts/parts/")}


def test_days_appended_replaced_and_dropped_are_as_on_disk(s3: Served, days: list[Path], tmp_path: Path) -> None:
    for place in (PLACE, tmp_path / "disk"):
        for day in (*days[:3], days[1]):
            found = elute.count(day, place, append=True, key=f"day={day.stem}")
        assert found.parts == 3 and found.replaced and not found.dropped
    assert check(PLACE) == check(tmp_path / "disk")
    assert check(PLACE, last=2) == check(tmp_path / "disk", last=2)
    words = ("count", days[3], "--append", "--key", "day=3", "--drop", "day < 2", "--json")
    remote, local = (call_elute(*words, "--out", place) for place in (PLACE, tmp_path / "disk"))
    assert remote.code == 0, remote.err
    assert {**remote.json, "out": None} == {**local.json, "out": None}
    assert remote.json["dropped"] == 2 and check(PLACE) == check(tmp_path / "disk") == check(days[2:4])


def test_the_counts_of_one_log(s3: Served, days: list[Path], tmp_path: Path) -> None:
    for day in days[:2]:
        elute.count(day, PLACE)
        assert check(PLACE) == check(day)
    done = call_elute("count", days[0], "--item", "doc_id", "--out", PLACE, "--json")
    assert done.code == 0, done.err
    assert check(PLACE) == check(days[0], item="doc_id") and "/lake/counts/pairs.parquet" in s3.files
    elute.count(days[0], PLACE)
    assert "/lake/counts/pairs.parquet" not in s3.files
    with pytest.raises(EluteError, match="holds the counts of one log"):
        append(days[0])


def test_two_writers_at_once_are_both_in(s3: Served, days: list[Path]) -> None:
    workers = [threading.Thread(target=append, args=(day,)) for day in days]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [part["key"]["day"] for part in read_index(s3)["parts"]] == [day.stem for day in days]
    assert check(PLACE) == check(days)


def test_many_parts_become_a_block(s3: Served, days: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adding, "MANY", 4)
    for day in days:
        append(day)
    assert len(read_index(s3)["blocks"]) == 1
    assert check(PLACE) == check(days)
    assert check(PLACE, last=1) == check(days[-1])


def test_a_writer_that_is_killed_loses_and_doubles_nothing(s3: Served, days: list[Path]) -> None:
    append(days[0])
    append(days[1])
    told = {check(days[:2])["clicks"]: 2, check(days[:3])["clicks"]: 3}
    ended: set[int] = set()
    code = f"import elute; elute.count({str(days[2])!r}, {PLACE!r}, append=True, key='day=2')"
    for moment in range(8):
        before = len(s3.seen)
        writer = subprocess.Popen([sys.executable, "-c", code])
        while writer.poll() is None and sum(one[0] == "PUT" for one in s3.seen[before:]) < moment:
            time.sleep(0.001)
        writer.kill()
        writer.wait()
        ended.add(told[check(PLACE)["clicks"]])
    assert 2 in ended
    append(days[2])
    assert check(PLACE) == check(days[:3])


def test_what_a_killed_writer_leaves_is_removed_when_it_is_old(s3: Served, days: list[Path]) -> None:
    append(days[0])
    named = {part["name"] for part in read_index(s3)["parts"]}
    left, fresh = "0123456789abcdef", "fedcba9876543210"
    for name in (left, fresh):
        path = f"/lake/counts/parts/{name}/cells.parquet"
        s3.files[path], s3.put[path] = b"half", datetime.now(UTC) - timedelta(days=2 if name == left else 0)
    append(days[1])
    named = {part["name"] for part in read_index(s3)["parts"]}
    assert list_parts(s3) == {*named, fresh}


def test_an_answer_that_is_lost_is_no_part_twice(s3: Served, days: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_PAUSES", (0.0, 0.0, 0.0))
    append(days[0])
    for lost in range(5):
        s3.dies_after = lost
        append(days[1])
        s3.dies_after = None
        assert check(PLACE) == check(days[:2])
    assert len(read_index(s3)["parts"]) == 2


def test_a_part_that_does_not_fit_leaves_nothing(s3: Served, days: list[Path]) -> None:
    append(days[0])
    before = dict(s3.files)
    with pytest.raises(EluteError, match="have all positions: give the same `max_position=`"):
        append(days[1], max_position=3)
    with pytest.raises(EluteError, match="were counted with"):
        append(days[1], bias="query_id")
    assert s3.files == before


def test_what_is_refused(s3: Served, days: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    s3.files["/lake/other/readme.txt"] = b"something else"
    appending: dict[str, Any] = {"append": True, "key": "day=0"}
    for given in (appending, {}):
        with pytest.raises(EluteError, match="already exists and is not a counts folder"):
            elute.count(days[0], "s3://lake/other", **given)
    with pytest.raises(EluteError, match="is not an address such as s3://bucket/folder"):
        elute.count(days[0], "s3://lake")
    for place in ("gs://lake/counts", "https://lake.example/counts"):
        done = call_elute("count", days[0], "--out", place)
        assert done.code == 1 and "is an address; write to disk" in done.err
    s3.files["/lake/log.parquet"] = days[0].read_bytes()
    done = call_elute("count", "s3://lake/log.parquet", "--out", "s3://lake/log.parquet")
    assert done.code == 1 and "overlaps with what is read" in done.err
    assert call_elute("fit", days[0], "--out", PLACE).code == 1
    append(days[0])
    with pytest.raises(EluteError, match="is a folder of parts"):
        elute.count(days[0], PLACE)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(EluteError, match="the store says 403 Forbidden; check the AWS keys") as refused:
        append(days[1])
    assert "another" not in str(refused.value)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(EluteError, match="there are no AWS keys to write with"):
        append(days[1])


def test_keys_from_a_file(s3: Served, days: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = "wJalrXUt/nFEMI+bPxRfi"  # noqa: S105
    keys = f"[nightly]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {secret}\n"
    (tmp_path / "credentials").write_text(keys)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "nightly")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert append(days[0]).parts == 1


def test_a_store_that_knows_no_conditions_is_refused(s3: Served, days: list[Path]) -> None:
    s3.conditions = False
    with pytest.raises(EluteError, match="does not write on a condition"):
        append(days[0])
    assert not s3.files


def test_a_store_that_is_not_there(monkeypatch: pytest.MonkeyPatch, days: list[Path]) -> None:
    with serving(s3=True) as served:
        with_keys(monkeypatch, served)
    monkeypatch.setattr(buckets, "_PAUSES", (0.0, 0.0))
    with pytest.raises(EluteError, match="the store cannot be reached"):
        append(days[0])

"""Spark finds in files what the embedded engine finds, or refuses them as that does; its own session stays private."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from elute.engines.spark import session

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

HEADER = "query_id,doc_id,position,click\n"
SAME = {
    "semicolons.csv": "query_id;doc_id;position;click\n1;a;1;0\n1;a;2;1\n2;b;2;0\n",
    "bars.csv": "query_id|doc_id|position|click\n1|a|1|0\n1|a|2|1\n",
    "empty.csv": HEADER + '1,"",1,0\n1,a,2,0\n2,b,2,0\n2,,1,1\n',
    "quotes.csv": HEADER + '1,"a\nb",1,0\n1,"a\nb",2,0\n1,"a""b",2,0\n\n1,a\\,1,0\n',
    "mixed.ndjson": '{"query_id":1,"doc_id":"a","position":1,"click":0}\n'
    '{"query_id":"1","doc_id":2,"position":2,"click":true}\n',
}
REFUSED = {
    "short.csv": HEADER + "1,a,1,0\n1,a,2\n",
    "long.csv": HEADER + "1,a,1,0\n1,a,2,0,9\n",
    "long-elsewhere.csv": "query_id,doc_id,position,click,unused\n1,a,1,0,1\n1,a,2,0\n",
    "broken.ndjson": '{"query_id":1,"doc_id":"a","position":1,"click":0}\n{"query_id":1,"doc_\n',
    "capitals.csv": "query_id,doc_id,position,click,Click\n1,a,1,0,1\n",
}


def check(path: Path, **options: Any) -> dict[str, Any]:
    with elute.read_log(str(path), **options) as log:
        return elute.check(log).to_dict()


@pytest.mark.parametrize("name", SAME)
def test_the_same_rows(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SAME[name])
    assert check(tmp_path / name, engine="spark") == check(tmp_path / name)


def test_files_with_other_columns_and_separators_are_one_log(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(SAME["semicolons.csv"])
    (tmp_path / "b.csv").write_text(HEADER.replace("click", "click,more") + "1,a,2,1,9\n")
    both = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    found = [elute.check(elute.read_log(both, engine=engine)).to_dict() for engine in ("spark", "duckdb")]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_both_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(REFUSED[name])
    for options in ({}, {"engine": "spark"}):
        with pytest.raises(elute.EluteError) as refused:
            check(tmp_path / name, **options)
        assert "\n" not in str(refused.value)
        assert name in str(refused.value)


def test_capitals_in_parquet_are_refused_by_both(tmp_path: Path) -> None:
    log = {"query_id": [1], "doc_id": ["a"], "Doc_ID": ["c"], "position": [1], "click": [0]}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    for options in ({}, {"engine": "spark"}):
        with pytest.raises(elute.EluteError, match="differ in capitals only; rename one"):
            check(tmp_path / "log.parquet", **options)


def test_messages_name_the_columns_of_the_log(tmp_path: Path) -> None:
    """Not those that elute gives them on the way."""
    log = {"query_id": [1, 1], "doc_id": [[1], [1]], "position": [1, 2], "click": [[0], [1]], "clicks": [0, 1]}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    for options in ({}, {"engine": "spark"}):
        with pytest.raises(elute.EluteError, match=r"column 'click' holds .* values where numbers are expected"):
            check(tmp_path / "log.parquet", **options)
    with pytest.raises(elute.EluteError, match="column 'doc_id' holds array<bigint> values, for which there is no"):
        check(tmp_path / "log.parquet", engine="spark", exact=True, click="clicks")


def test_times_in_nanoseconds_are_refused_with_what_to_do(tmp_path: Path) -> None:
    log = {"query_id": [1], "doc_id": pa.array([1], pa.timestamp("ns")), "position": [1], "click": [0]}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    with pytest.raises(elute.EluteError, match="nanoseconds, which Spark does not read; store them in microseconds"):
        check(tmp_path / "log.parquet", engine="spark")


@pytest.mark.parametrize(("shown", "why"), [(1e300, "more than can be counted"), (float("inf"), "not a whole number")])
def test_counts_too_large_are_refused_by_both(tmp_path: Path, shown: float, why: str) -> None:
    log = {"query_id": [1], "doc_id": [1], "position": [1], "click": [0], "n": [shown]}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    said = []
    for options in ({}, {"engine": "spark"}):
        with pytest.raises(elute.EluteError, match=f"column 'n' is {why}") as refused:
            check(tmp_path / "log.parquet", impressions="n", **options)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_sums_too_large_are_refused_by_both(tmp_path: Path) -> None:
    log = {"query_id": [1, 1], "doc_id": [1, 1], "position": [1, 2], "click": [0, 0], "n": [2**62, 2**62]}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    for options in ({}, {"engine": "spark"}):
        with pytest.raises(elute.EluteError, match="more than can be counted"):
            check(tmp_path / "log.parquet", impressions="n", **options)


def test_a_session_of_its_own_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """What elute would set, were there no session."""
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    own = session._keep_private()
    assert own["spark.driver.bindAddress"] == own["spark.driver.host"] == "127.0.0.1"
    assert stat.S_IMODE(Path(own["spark.local.dir"]).stat().st_mode) == 0o700
    monkeypatch.setenv("SPARK_LOCAL_IP", "192.0.2.1")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/somewhere")
    assert session._keep_private() == {}

"""What is read is what was named: a name is no pattern where a file has it, and a folder's name hides no column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import elute
from elute.engines.duckdb.files import find_files
from elute.errors import EluteError
from elute.io.ranking import read_ranking

FORMATS = ("parquet", "csv", "ndjson")
ODD = ("log[1]", "log?", "log*", "log[!a-c]", "{log}", "log]x[", "~log", "a'b", 'a"b', "a=b")
"""Beside `log1`, which the first two match as patterns."""


def embedded(path: object, **options: Any) -> elute.ClickLog:
    return elute.read_log(path, **options)


def in_memory_bounds(path: object, **options: Any) -> elute.ClickLog:
    return elute.read_log(path, memory=1 << 30, **options)


def in_spark(path: object, **options: Any) -> elute.ClickLog:
    return elute.read_log(path, engine="spark", **options)


SPARK = pytest.param(in_spark, "parquet", marks=pytest.mark.xdist_group("spark"))
CASES = [(embedded, form) for form in FORMATS] + [(in_memory_bounds, "parquet"), SPARK]
Reader = Callable[..., elute.ClickLog]


@pytest.fixture
def read(request: pytest.FixtureRequest) -> Reader:
    if request.param is in_spark:
        request.getfixturevalue("spark")
    reader: Reader = request.param
    return reader


def write(path: Path, rows: int, **more: int) -> Path:
    """A log; its last document tells the files apart."""
    number = np.arange(rows)
    columns = {"query_id": number % 3, "doc_id": number, "position": number % 2 + 1, "click": number % 2}
    table = pa.table({**columns, **{name: np.full(rows, value) for name, value in more.items()}})
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pc.write_csv(table, path)
    else:
        path.write_text("".join(f"{row}\n".replace("'", '"') for row in table.to_pylist()))
    return path


def count_rows(log: elute.ClickLog) -> int:
    with log:
        return log.survey.rows


@pytest.mark.parametrize(("read", "form"), CASES, indirect=["read"])
def test_a_name_is_no_pattern(read: Reader, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / f"log1.{form}", 9)
    names = ODD[:5:2] if read is in_spark else ODD if form == "parquet" else ODD[:2]
    for rows, name in enumerate(names, 10):
        write(tmp_path / f"{name}.{form}", rows)
    for rows, name in enumerate(names, 10):
        assert count_rows(read(str(tmp_path / f"{name}.{form}"))) == rows, name
    assert count_rows(read(str(tmp_path))) == 9 + sum(range(10, 10 + len(names)))
    monkeypatch.chdir(tmp_path)
    if read is not in_spark:  # whose own folder stays where it was started
        assert count_rows(read(f"log[1].{form}")) == 10
        (tmp_path / f"log[1].{form}").unlink()
        assert count_rows(read(f"log[1].{form}")) == 9
        assert count_rows(read([f"log[1].{form}", f"log1.{form}"])) == 18


@pytest.mark.parametrize(("read", "form"), CASES, indirect=["read"])
def test_names_of_folders(read: Reader, form: str, tmp_path: Path) -> None:
    """Columns below the folder that was named, as everywhere; never in the place of a file's own."""
    within = tmp_path / "year=7" / "logs"
    for day in (1, 2):
        write(within / f"date={day}" / f"log.{form}", 10 * day)
        write(tmp_path / "twice" / f"date={day}" / f"log.{form}", 10 * day, date=5)
    with read(str(within), bias="date") as log:
        assert [int(str(value)) for value in log.survey.factors["date"].to_pylist()] == [1, 2]
        assert log.survey.impressions.tolist() == [10, 20]
        assert "year" not in log.engine.columns
    assert count_rows(read(str(within), where="date = 2")) == 20
    with pytest.raises(EluteError, match="'date' is a column of the files and a part of their folders' names"):
        read(str(tmp_path / "twice"))
    for own in (f"twice/*/*.{form}", "twice/*"):
        with read(str(tmp_path / own), bias="date") as log:
            assert log.survey.factors["date"].to_pylist() == [5]
    assert count_rows(read(str(tmp_path / "twice" / "date=2" / f"log.{form}"), where="date = 5")) == 20


@pytest.mark.parametrize(("read", "_"), CASES[-2:], indirect=["read"])
def test_what_is_hidden_is_left_out(read: Reader, _: str, tmp_path: Path) -> None:
    """What is being written, by elute or by Spark."""
    for rows, name in enumerate(("log", ".part", "_part", ".elute-new-x/cells", "_temporary/0/part"), 3):
        write(tmp_path / "logs" / f"{name}.parquet", rows)
    assert count_rows(read(str(tmp_path / "logs"))) == 3
    assert count_rows(embedded(str(tmp_path / "logs" / ".part.parquet"))) == 4


def test_other_tables_and_texts(tmp_path: Path) -> None:
    """Labels, propensities and features are read by the same reader; LETOR by its own."""
    write(tmp_path / "log1.parquet", 9)
    write(tmp_path / "log[1].parquet", 12)
    pq.write_table(pa.table({"position": [1, 2], "propensity": [1.0, 0.5]}), tmp_path / "p[1].parquet")
    pq.write_table(pa.table({"position": [1, 2], "propensity": [1.0, 0.1]}), tmp_path / "p1.parquet")
    weighted = elute.fit(
        tmp_path / "log[1].parquet", "ipw", propensities=tmp_path / "p[1].parquet", allow_unidentified=True
    )
    assert weighted.propensities is not None
    assert weighted.propensities["propensity"].to_pylist() == [1.0, 0.5]
    for name, queries in (("a1.txt", 2), ("a[1].txt", 3)):
        (tmp_path / name).write_text("".join(f"{query % 2} qid:{query} 1:0.5\n" for query in range(queries)))
    assert read_ranking(str(tmp_path / "a[1].txt")).n_queries == 3


def test_an_empty_name_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log.parquet", 9)
    monkeypatch.chdir(tmp_path)
    for empty in ("", "  ", ["log.parquet", ""]):
        with pytest.raises(EluteError, match=r"a name is empty; name a file or a folder \('.' is the one you are in\)"):
            elute.read_log(empty)
    assert count_rows(elute.read_log(".")) == 9


def test_names_that_cannot_be_written_down(tmp_path: Path) -> None:
    odd = write(tmp_path / "log.parquet", 9).rename(tmp_path / "log\udcff.parquet")
    for named in (odd, tmp_path, tmp_path / "log*"):
        with pytest.raises(EluteError, match=r"log\\udcff.parquet' is not UTF-8; rename the file, or name it through"):
            elute.read_log(str(named))
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "plain.parquet").symlink_to(odd)
    assert count_rows(elute.read_log(tmp_path / "link")) == 9
    with pytest.raises(EluteError, match="no file can be called"):
        elute.read_log("log\0.parquet")


def test_a_backslash_beside_a_sign_of_patterns(tmp_path: Path) -> None:
    assert count_rows(elute.read_log(write(tmp_path / "a\\b.parquet", 9))) == 9
    with pytest.raises(EluteError, match="cannot be read under this name"):
        elute.read_log(write(tmp_path / "a\\b[1].parquet", 9))


def test_a_pattern_stands_for_folders_too(tmp_path: Path) -> None:
    files = [write(tmp_path / folder / "log.parquet", 9) for folder in ("a1", "a2", "b")]
    assert find_files(str(tmp_path / "a*")) == [str(file) for file in files[:2]]

"""Bad input: exit code 1, one line that says what and where, no traceback."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import CHAIN, Outcome, call_elute, run_elute
from elute.cells.roles import TAKEN
from elute.cells.survey import Survey
from elute.errors import EluteError

HEADER = "query_id,doc_id,position,click\n"


def parquet(path: Path, **columns: list[object]) -> Path:
    pq.write_table(pa.table({**CHAIN, **columns}), path)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def noise(path: Path) -> Path:
    path.write_bytes(random.Random(0).randbytes(4000))
    return path


def truncated(path: Path) -> Path:
    whole = parquet(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


def truncated_gzip(path: Path) -> Path:
    rows = "".join(f"q{i},d{i * 7919 % 1013},{i % 10},0\n" for i in range(5000))
    path.write_bytes(gzip.compress((HEADER + rows).encode())[:-2000])
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    (path / "notes.txt").write_text("nothing here")
    return path


CASES = {
    "missing file": (lambda d: d / "nowhere.parquet", ["no file", "nowhere.parquet"]),
    "glob without a match": (lambda d: d / "nowhere-*.csv", ["no file", "nowhere-*.csv"]),
    "empty file": (lambda d: text(d / "log.csv", ""), ["log.csv", "empty"]),
    "header only": (lambda d: text(d / "log.csv", HEADER), ["log.csv", "no rows"]),
    "empty Parquet": (lambda d: parquet(d / "log.parquet", **{k: [] for k in CHAIN}), ["log.parquet", "no rows"]),
    "text as click": (
        lambda d: text(d / "log.csv", HEADER + "a,b,1,yes\na,c,2,1\n"),
        ["'click'", "not a number", "1 row", "'yes'"],
    ),
    "negative clicks": (lambda d: parquet(d / "l.parquet", click=[1, 0, -1, -1, 1, 0]), ["negative in 2 rows", "-1"]),
    "clicks above one": (lambda d: parquet(d / "l.parquet", click=[1, 0, 3, 0, 1, 0]), ["above 1", "3", "impressions"]),
    "fractional clicks": (lambda d: parquet(d / "l.parquet", click=[1, 0, 0.5, 0, 1, 0]), ["whole number", "0.5"]),
    "null clicks": (lambda d: parquet(d / "l.parquet", click=[1, 0, None, 0, 1, 0]), ["null", "1 row"]),
    "truncated Parquet": (lambda d: truncated(d / "log.parquet"), ["cannot read", "log.parquet"]),
    "garbage as Parquet": (lambda d: noise(d / "log.parquet"), ["cannot read", "log.parquet"]),
    "garbage as CSV": (lambda d: noise(d / "log.csv"), ["log.csv"]),
    "garbage as NDJSON": (lambda d: noise(d / "log.ndjson"), ["cannot read", "log.ndjson"]),
    "truncated gzip": (lambda d: truncated_gzip(d / "log.csv.gz"), ["cannot read", "log.csv.gz"]),
    "row too short": (lambda d: text(d / "log.csv", HEADER + "a,b,1,0\na,b\n"), ["cannot read", "log.csv", "Line: 3"]),
    "broken NDJSON": (
        lambda d: text(d / "log.ndjson", '{"query_id": 1}\n{"query_id":\n'),
        ["cannot read", "log.ndjson"],
    ),
    "every row lacks an id": (
        lambda d: parquet(d / "log.parquet", doc_id=pa.array([None] * 6, pa.string())),
        ["no usable row", "'doc_id' is null in 6"],
    ),
    "folder without data": (lambda d: folder(d / "logs"), ["logs", "no Parquet, CSV or NDJSON"]),
    "unknown format": (lambda d: text(d / "log.xlsx", "x"), ["log.xlsx", "unknown format"]),
    "nested ids": (
        lambda d: parquet(d / "log.parquet", doc_id=[["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ["'doc_id' holds VARCHAR[] values, which are no ids; make text or numbers of them"],
    ),
    "binary ids": (
        lambda d: parquet(d / "log.parquet", query_id=[b"a", b"a", b"b", b"\xff", b"c", b"c"]),
        ["'query_id' holds BLOB values, which are no ids"],
    ),
    "structs as positions": (
        lambda d: parquet(d / "log.parquet", position=[{"x": n} for n in range(6)]),
        ["'position' holds STRUCT(x BIGINT) values, which are no ids"],
    ),
    "remote file": (lambda d: "ftp://host/log.parquet", ["ftp://host/log.parquet"]),
    "database without table": (lambda d: f"duckdb://{text(d / 'x.db', 'x')}", ["names no table"]),
    "not a database": (lambda d: f"duckdb://{noise(d / 'x.db')}#log", ["cannot read", "x.db"]),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_exit_code_1(case: str, tmp_path: Path) -> None:
    make, expected = CASES[case]
    one_line(call_elute("check", make(tmp_path), "--json"), expected)


@pytest.mark.parametrize("case", ["missing file", "truncated gzip", "garbage as NDJSON"])
def test_a_process_ends_so_too(case: str, tmp_path: Path) -> None:
    """Whoever finds the problem: elute before it reads, or DuckDB while it does."""
    make, expected = CASES[case]
    one_line(run_elute("check", make(tmp_path), "--json"), expected)


def one_line(outcome: Outcome, expected: list[str]) -> None:
    assert outcome.code == 1
    assert outcome.out == ""
    *progress, message = outcome.err.strip().splitlines()
    assert len(progress) <= 2  # on a slow machine: what was being done
    assert "Traceback" not in outcome.err
    for words in expected:
        assert words in message


def test_every_problem_in_one_message(tmp_path: Path) -> None:
    log = parquet(tmp_path / "log.parquet", click=[1, 0, -1, None, 7, 0]).rename(tmp_path / "renamed.parquet")
    outcome = call_elute("check", log, "--doc", "docid", "--bias", "Position,device")
    assert outcome.code == 1
    for words in (
        "no column 'docid' (closest: doc_id)",
        "no column 'Position' (closest: position)",
        "no column 'device'",
        "is negative in 1 row",
        "is null",
        "above 1",
    ):
        assert words in outcome.err.strip().splitlines()[-1]


def test_names_from_a_log_cannot_break_the_line(tmp_path: Path) -> None:
    log = text(tmp_path / "log.csv", 'query_id,doc_id,"posi\n\x1b[31mtion",click\na,b,1,0\n')
    outcome = call_elute("check", log)
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "\x1b" not in outcome.err
    assert r"closest: posi\n\x1b[31mtion" in outcome.err


def test_counts_that_contradict_each_other(tmp_path: Path) -> None:
    log = parquet(tmp_path / "log.parquet", click=[1, 0, 0, 5, 1, 0], shown=[3, 1, 2, 4, 1, -2])
    outcome = call_elute("check", log, "--impressions", "shown")
    assert outcome.code == 1
    assert "'click' is above 'shown' in" in outcome.err
    assert "'shown' is negative in 1 row" in outcome.err


@pytest.mark.parametrize(
    "name", ["component", "relevance", "propensity", "log_se", "impressions", "CLICKS", "elute_key"]
)
@pytest.mark.parametrize(("role", "column"), [("doc", "doc_id"), ("query", "query_id"), ("bias", "position")])
def test_names_of_elutes_own_columns(name: str, role: str, column: str, tmp_path: Path) -> None:
    """Beside them an id of that name could not be told apart in the files of a fit."""
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({name if each == column else each: values for each, values in CHAIN.items()}), log)
    for verb in (["check"], ["fit", "--out", tmp_path / "fit"], ["count", "--out", tmp_path / "counts"]):
        outcome = call_elute(verb[0], log, f"--{role}", name, *verb[1:])
        one_line(outcome, [f"column '{name}' is called like one of elute's own", "rename it"])
    assert list(tmp_path.iterdir()) == [log]


def test_clicks_and_impressions_may_be_called_so(tmp_path: Path) -> None:
    log = parquet(tmp_path / "log.parquet", clicks=[1, 0, 0, 1, 1, 0], impressions=[2] * 6)
    assert call_elute("check", log, "--click", "clicks", "--impressions", "impressions").code == 3


@pytest.mark.parametrize("shown", [2**62, 10**15 + 1])
def test_impressions_that_cannot_be_counted(shown: int, tmp_path: Path) -> None:
    log = parquet(tmp_path / "log.parquet", shown=[shown] * 6)
    one_line(call_elute("check", log, "--impressions", "shown"), ["'shown' is more than can be counted in 6 rows"])


def test_impressions_whose_sum_cannot_be_counted() -> None:
    counted = [np.array([2**62] * n, np.int64) for n in (1, 2)]
    fields = {"rows": 2, "usable": 2, "unshown": 0, "nulls": {}, "factors": pa.table({}), "keys": counted[0]}
    Survey(**fields, rows_under=counted[0], impressions=counted[0], clicks=counted[0])
    with pytest.raises(EluteError, match=r"9\.22e\+18 impressions are more than can be counted"):
        Survey(**fields, rows_under=counted[1], impressions=counted[1], clicks=counted[1])


def test_the_index_that_pandas_writes(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    pd.DataFrame(CHAIN).to_csv(log)
    assert log.read_text().startswith(",query_id")
    plain = tmp_path / "plain.csv"
    pd.DataFrame(CHAIN).to_csv(plain, index=False)
    assert call_elute("check", log, "--json").json == call_elute("check", plain, "--json").json


@pytest.mark.parametrize(
    "arguments", [["check"], ["check", "x.parquet", "--nonsense"], ["check", "x", "--engine", "abacus"], ["frobnicate"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert call_elute(*arguments).code == 2


def test_wrong_usage_of_a_process_is_exit_code_2() -> None:
    outcome = run_elute("check", "x.parquet", "--nonsense")
    assert outcome.code == 2
    assert "Traceback" not in outcome.err


def test_the_docs_name_every_name_that_is_taken() -> None:
    page = (Path(__file__).parents[1] / "docs" / "sources.md").read_text(encoding="utf-8")
    assert {name for name in TAKEN if f"`{name}`" not in page} == set()

"""`elute convert`: session lists, the file that is written, what is said about it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elute.cli import main
from elute.cli.verbs.convert import FORMATS
from elute.errors import EluteError
from elute.io.logs import pages
from elute.io.logs.convert import READERS, convert
from elute.io.logs.tally import Tally

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

YANDEX = "0\t0\tQ\t7\t1\ta\tb\n0\t3\tC\tb\n0\t3\tC\tb\n0\t4\tC\tz\n1\t0\tQ\t7\t1\tb\ta\n"


def elute(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def yandex(tmp_path: Path) -> Path:
    (tmp_path / "log.tsv").write_text(YANDEX)
    return tmp_path / "log.tsv"


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.chdir(tmp_path)
    sources = [docs / "data" / name for name in ("ubi_queries.ndjson", "ubi_events.ndjson")]
    done = elute("convert", *sources, "--from", "ubi", "--out", "ubi.parquet")
    shown = (docs / "convert.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert done.stdout == shown


def test_the_command_knows_every_reader() -> None:
    assert tuple(READERS) == FORMATS


def test_json(yandex: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "log.parquet"
    done = elute("convert", yandex, "--from", "yandex", "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "log": str(out),
        "format": "yandex",
        "bias": ["position"],
        "rows": 4,
        "sessions": 2,
        "clicks": 1,
        "orphans": 1,
        "repeated_clicks": 1,
        "position_base": None,
        "malformed": 0,
        "problems": [],
    }
    assert pq.read_table(out).column_names == ["session_id", "query_id", "doc_id", "position", "click"]
    assert [path.name for path in out.parent.iterdir()] == ["log.parquet"]
    assert elute("check", out).exit_code == 0


def test_what_is_said(yandex: Path, tmp_path: Path) -> None:
    done = elute("convert", yandex, "--from", "yandex", "--out", tmp_path / "log.parquet")
    assert done.stdout.splitlines() == [
        f"4 results on 2 pages, 1 of them clicked, written to {tmp_path}/log.parquet",
        "- clicks on a result that was not shown on their page, left out: 1 (33.3%)",
        "- clicks after the first on one result of a page, left out: 1",
        f"Next: elute check {tmp_path}/log.parquet",
    ]


def test_malformed_lines_stop_and_leave_nothing(yandex: Path, tmp_path: Path) -> None:
    yandex.write_text(YANDEX + "2\t\x1b[31m\n")
    out = tmp_path / "log.parquet"
    out.write_text("what was there")
    done = elute("convert", yandex, "--from", "yandex", "--out", out)
    assert done.exit_code == 1
    assert "line 6: fewer than 4 fields" in done.stderr
    assert "--skip-malformed" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert out.read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "log.tsv"]
    done = elute("convert", yandex, "--from", "yandex", "--out", out, "--skip-malformed")
    assert done.exit_code == 0
    assert f"- 1 malformed records left out: {yandex}:6: fewer than 4 fields" in done.stdout
    assert pq.read_metadata(out).num_rows == 4


def test_wrong_format(yandex: Path, tmp_path: Path) -> None:
    for format in ("ubi", "baidu", "tiangong", "sessions"):
        done = elute("convert", yandex, "--from", format, "--out", tmp_path / "log.parquet")
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1), (format, done.stderr)
        assert not (tmp_path / "log.parquet").exists()


def test_sources_that_cannot_be(yandex: Path, tmp_path: Path) -> None:
    with pytest.raises(EluteError, match=r"is read as .* too, and would be written over"):
        convert(yandex, "yandex", yandex)
    with pytest.raises(EluteError, match="is a folder; name its files"):
        convert(tmp_path, "yandex", tmp_path / "log.parquet")
    with pytest.raises(EluteError, match="no file"):
        convert(tmp_path / "none", "yandex", tmp_path / "log.parquet")
    with pytest.raises(EluteError, match="no format 'csv'; there are: ubi"):
        convert(yandex, "csv", tmp_path / "log.parquet")
    (tmp_path / "empty").write_text("")
    with pytest.raises(EluteError, match="no result page in"):
        convert(tmp_path / "empty", "yandex", tmp_path / "log.parquet")


def sessions(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def read(path: Path, batch: int = 100, skip: bool = False) -> tuple[list[dict[str, Any]], Tally]:
    tally = Tally(skip=skip)
    tables = list(pages.read([path], tally, batch_pages=batch))
    return pa.concat_tables(tables).to_pylist(), tally


page = st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=5)


@same_folder
@given(
    shown=st.lists(st.tuples(st.integers(0, 5), page), min_size=1, max_size=12),
    batch=st.integers(1, 5),
    base=st.sampled_from([None, 0, 1]),
)
def test_lists_of_any_length(
    tmp_path: Path, shown: list[tuple[int, list[tuple[int, bool]]]], batch: int, base: int | None
) -> None:
    rows: list[dict[str, Any]] = []
    for query, results in shown:
        row = {"query_id": query, "query_doc_ids": [doc for doc, _ in results], "clicks": [c for _, c in results]}
        rows.append(row if base is None else {**row, "positions": list(range(base, base + len(results)))})
    found, tally = read(sessions(tmp_path / "log.parquet", rows), batch)
    expected = [
        {"session_id": number, "query_id": str(query), "doc_id": str(doc), "position": place, "click": int(click)}
        for number, (query, results) in enumerate(shown)
        for place, (doc, click) in enumerate(results, start=1)
    ]
    assert found == expected
    assert (tally.position_base, tally.sessions) == (base, len(shown))


def test_lists_that_do_not_fit(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"query_doc_ids": [1, 2], "clicks": [0, 1]},
        {"query_doc_ids": [1, 2], "clicks": [0]},
        {"query_doc_ids": [1, None], "clicks": [0, 1]},
        {"query_doc_ids": [], "clicks": []},
        {"query_doc_ids": None, "clicks": [1]},
        {"query_doc_ids": [3], "clicks": [1]},
    ]
    path = sessions(tmp_path / "log.parquet", rows)
    with pytest.raises(EluteError, match="row 2: not as many clicks as query_doc_ids"):
        read(path)
    found, tally = read(path, batch=2, skip=True)
    assert [(row["session_id"], row["doc_id"]) for row in found] == [(0, "1"), (0, "2"), (1, "3")]
    assert [problem.line for problem in tally.problems] == [2, 3, 4, 5]


@pytest.mark.parametrize("wrong", [-1, 2, 0.5, float("nan")])
def test_a_click_in_a_list_is_0_or_1(tmp_path: Path, wrong: float) -> None:
    rows = [{"query_doc_ids": [1, 2], "clicks": [0.0, 1.0]}, {"query_doc_ids": [1, 2], "clicks": [1.0, wrong]}]
    path = sessions(tmp_path / "log.parquet", rows)
    with pytest.raises(EluteError, match="row 2: a click that is neither 0 nor 1"):
        read(path)
    found, tally = read(path, skip=True)
    assert tally.malformed == 1
    assert [row["click"] for row in found] == [0, 1]


@pytest.mark.parametrize("wrong", [-1, 0.5, 2.0**31, float("nan")])
def test_a_position_in_a_list_is_a_whole_number(tmp_path: Path, wrong: float) -> None:
    row = {"query_doc_ids": [1, 2, 3], "clicks": [0, 1, 0], "positions": [0.0, 1.0, wrong]}
    path = sessions(tmp_path / "log.parquet", [row])
    with pytest.raises(EluteError, match=r"a position that is none|start at"):
        read(path)


def test_lists_without_queries(tmp_path: Path) -> None:
    path = sessions(tmp_path / "in.parquet", [{"query_doc_ids": [1, 2], "clicks": [False, True]}])
    done = elute("convert", path, "--from", "sessions", "--out", tmp_path / "log.parquet")
    assert "- there is no query_id: a doc_id stands for query and document together" in done.stdout
    assert done.stdout.splitlines()[-1] == f"Next: elute check {tmp_path}/log.parquet --item doc_id"
    assert elute("check", tmp_path / "log.parquet", "--item", "doc_id").exit_code == 3


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query_doc_ids": [1]}, "has no column 'clicks'; it has: query_doc_ids"),
        (
            {"query_doc_ids": 1, "clicks": [1]},
            "column 'query_doc_ids' is int64; with a page in each row it must be a list",
        ),
        ({"query_doc_ids": [1], "clicks": [1], "positions": [3]}, "'positions' start at 3"),
        ({"query_doc_ids": [1], "clicks": ["a"]}, "column 'clicks' holds string values; make numbers of them"),
        ({"query_doc_ids": [1], "clicks": [1], "positions": ["a"]}, "column 'positions' holds string values"),
        ({"query_doc_ids": [[1]], "clicks": [1]}, "column 'query_doc_ids' holds list.* values; make text or numbers"),
        ({"query_doc_ids": [1], "clicks": [1], "query_id": b"a"}, "column 'query_id' holds binary values"),
    ],
)
def test_columns_that_do_not_fit(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    with pytest.raises(EluteError, match=said):
        read(sessions(tmp_path / "log.parquet", [row]))


def test_ubi_says_what_its_clicks_count_from(tmp_path: Path) -> None:
    query = {"query_id": "p1", "user_query": "lamp", "query_response_hit_ids": ["a", "b"]}
    click = {"action_name": "click", "query_id": "p1", "event_attributes.object.object_id": "b"}
    (tmp_path / "q.ndjson").write_text(json.dumps(query))
    said = {}
    cases: dict[str, dict[str, object]] = {
        "0": {"event_attributes.position.ordinal": 1},
        "else": {"event_attributes.position.ordinal": 7},
        "none": {},
        "no clicks": {"action_name": "item_click"},
    }
    for name, more in cases.items():
        (tmp_path / "e.ndjson").write_text(json.dumps({**click, **more}))
        done = elute("convert", tmp_path / "*.ndjson", "--from", "ubi", "--out", tmp_path / "log.parquet")
        assert done.exit_code == 0, done.stderr
        said[name] = " ".join(done.stdout.split())
    assert "clicks count positions from 0 (100.0% agree with the lists); the log counts from 1" in said["0"]
    assert "users may have seen another order than query_response_hit_ids" in said["else"]
    assert "no click says its position" in said["none"]
    assert "clicks are events whose action_name is 'click'; found: item_click" in said["no clicks"]


def test_a_damaged_file(tmp_path: Path) -> None:
    rows = [{"query_id": f"p{i}", "user_query": "lamp", "query_response_hit_ids": [str(i)]} for i in range(3000)]
    whole = sessions(tmp_path / "whole.parquet", rows).read_bytes()
    damaged = bytearray(whole)
    damaged[100:4000] = bytes(3900)
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    done = elute("convert", tmp_path / "damaged.parquet", "--from", "ubi", "--out", tmp_path / "log.parquet")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "cannot read" in done.stderr
    assert not (tmp_path / "log.parquet").exists()

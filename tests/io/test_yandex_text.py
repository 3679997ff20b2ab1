"""The challenge's text: Q and C rows against a plain reader, malformed rows by number, and the real log back again."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.io.logs import yandex
from elute.io.logs.convert import convert
from elute.io.logs.tally import Tally

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

Row = tuple[int, str, str, int, int]


def read(path: Path, chunk: int = 1 << 20, skip: bool = False) -> tuple[list[Row], Tally]:
    tally = Tally(skip=skip)
    tables = list(yandex.read([path], tally, chunk_bytes=chunk))
    return [tuple(row.values()) for row in pa.concat_tables(tables).to_pylist()], tally


def plain(lines: list[list[str]]) -> tuple[list[Row], int, int]:
    """Row by row: a click goes to the latest page of its session that shows its url, at its first place there."""
    rows: list[list[object]] = []
    pages: list[tuple[str, dict[str, int]]] = []
    orphans = repeated = 0
    for fields in lines:
        if fields[2] == "Q":
            places: dict[str, int] = {}
            for place, url in enumerate(fields[5:], start=1):
                places.setdefault(url, len(rows))
                rows.append([len(pages), f"{fields[3]}_{fields[4]}", url, place, 0])
            pages.append((fields[0], places))
        else:
            shown = [places[fields[3]] for session, places in pages if session == fields[0] and fields[3] in places]
            if not shown:
                orphans += 1
            elif rows[shown[-1]][4]:
                repeated += 1
            else:
                rows[shown[-1]][4] = 1
    return [tuple(row) for row in rows], orphans, repeated  # type: ignore[misc]


urls = st.sampled_from("abcdef")
action = st.one_of(
    st.tuples(st.sampled_from(["7", "8"]), st.sampled_from(["1", "2"]), st.lists(urls, min_size=1, max_size=5)),
    urls,
)


@same_folder
@given(sessions=st.lists(st.lists(action, max_size=6), min_size=1, max_size=6), chunk=st.integers(1, 200))
def test_any_log_in_chunks_of_any_size(tmp_path: Path, sessions: list[list[object]], chunk: int) -> None:
    lines = [
        [str(s), str(t), "C", a] if isinstance(a, str) else [str(s), str(t), "Q", a[0], a[1], *a[2]]  # type: ignore[index]
        for s, actions in enumerate(sessions)
        for t, a in enumerate(actions)
    ]
    if not lines:
        return
    path = tmp_path / "log.tsv"
    path.write_text("\n".join("\t".join(line) for line in lines))
    rows, tally = read(path, chunk)
    assert (rows, tally.orphans, tally.repeated_clicks) == plain(lines)
    assert tally.sessions == sum(line[2] == "Q" for line in lines)


BAD = """0\t0\tQ\t7\t1\ta\tb
0\t3\tX\tb

0\t4
0\t5\tQ\t8\t1
0\t6\tC\tb\tq
0\t7\tC\t
0\t8\tC\tb
"""


def test_malformed_rows_by_number(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_text(BAD)
    with pytest.raises(EluteError, match=r"log\.tsv: line 2: neither a Q nor a C row.*`skip_malformed=True`"):
        read(path)
    for chunk in (5, 20, 1000):
        rows, tally = read(path, chunk, skip=True)
        assert rows == [(0, "7_1", "a", 1, 0), (0, "7_1", "b", 2, 1)]
        assert [(problem.line, problem.reason.split(":")[0]) for problem in tally.problems] == [
            (2, "neither a Q nor a C row"),
            (4, "fewer than 4 fields"),
            (5, "a Q row without a url"),
            (6, "a C row that does not have 4 fields"),
            (7, "an empty field"),
        ]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(b"0\t0\tQ\t7\t1\ta\r\n0\t1\tC\t\xff\n0\t2\tC\ta\n")
    with pytest.raises(EluteError, match="line 2: not UTF-8"):
        read(path)
    rows, tally = read(path, skip=True)
    assert rows == [(0, "7_1", "a", 1, 1)]
    assert (tally.malformed, tally.orphans) == (1, 0)


def test_something_else_entirely(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("x\n" * 1000)
    with pytest.raises(EluteError, match=r"line 1: fewer than 4 fields: 'x'; line 2.*and 995 more"):
        read(tmp_path / "log.tsv")


def test_the_real_log_comes_back(tmp_path: Path, data: Path) -> None:
    """Written as the challenge wrote it (gzip, two files), read, and compared row by row."""
    source = str(data / "yandex/train.parquet")
    pages = duckdb.execute(
        f"""SELECT session_id, replace(any_value(query_id), '_', chr(9)) AS query,
                   string_agg(doc_id, chr(9) ORDER BY position) AS urls,
                   coalesce(list(doc_id ORDER BY position) FILTER (click = 1), []) AS clicked
            FROM '{source}' GROUP BY ALL ORDER BY session_id"""
    ).fetchall()
    text = [
        f"{session}\t0\tQ\t{query}\t{urls}\n" + "".join(f"{session}\t1\tC\t{url}\n" for url in clicked)
        for session, query, urls, clicked in pages
    ]
    half = len(text) // 2
    with gzip.open(tmp_path / "part-0.gz", "wt") as file:
        file.writelines(text[:half])
    (tmp_path / "part-1").write_text("".join(text[half:]))
    done = convert(str(tmp_path / "part-*"), "yandex", tmp_path / "log.parquet")
    assert (done.rows, done.tally.sessions, done.clicks) == (350_640, 35_064, 42_703)
    assert (done.tally.orphans, done.tally.repeated_clicks, done.tally.malformed) == (0, 0, 0)
    found, truth = pq.read_table(tmp_path / "log.parquet"), pq.read_table(source)
    for name in truth.column_names:
        assert found[name].cast(truth[name].type).equals(truth[name]), name

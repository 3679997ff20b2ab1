"""Baidu-ULTR's text: pages against what was written, and each kind of broken line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.io.logs import baidu
from elute.io.logs.tally import Tally

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def result(position: object, url: str = "u1", media: str = "0", click: object = 0) -> str:
    """A line of 32 fields: six that are read, and what users did besides."""
    return "\t".join([str(position), url, "11\x0112", "13\x0114\x0115", media, str(click), *["0"] * 26])


def read(path: Path, chunk: int = 1 << 20, skip: bool = False) -> tuple[list[tuple[object, ...]], Tally]:
    tally = Tally(skip=skip)
    tables = list(baidu.read([path], tally, chunk_bytes=chunk))
    return [tuple(row.values()) for row in pa.concat_tables(tables).to_pylist()], tally


pages = st.lists(
    st.tuples(
        st.sampled_from(["17", "4", "q"]),
        st.lists(
            st.tuples(st.integers(1, 30), st.sampled_from(["u1", "u2"]), st.sampled_from(["", "3"]), st.booleans()),
            max_size=5,
            unique_by=lambda shown: shown[0],
        ),
    ),
    min_size=1,
    max_size=6,
)


@same_folder
@given(pages=pages, chunk=st.integers(1, 400))
def test_any_pages_in_chunks_of_any_size(
    tmp_path: Path, pages: list[tuple[str, list[tuple[int, str, str, bool]]]], chunk: int
) -> None:
    lines, expected = [], []
    for number, (query, shown) in enumerate(pages):
        lines.append(f"{query}\t1\x012\t")
        for position, url, media, click in shown:
            lines.append(result(position, url, media, int(click)))
            expected.append((number, query, url, position, int(click), media))
    path = tmp_path / "part-00000"
    path.write_text("\n".join(lines) + "\n")
    rows, tally = read(path, chunk)
    assert rows == expected
    assert (tally.sessions, tally.position_base) == (len(pages), 1)


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        (["q\t1\t", "1\tu"], 2, "neither a query"),
        (["q\t1\t", result(0)], 2, "a position that is not a whole number from 1"),
        (["q\t1\t", result("x")], 2, "a position that is not a whole number from 1"),
        (["q\t1\t", result(1, click=2)], 2, "a click that is not 0 or 1"),
        (["q\t1\t", result(1, click="")], 2, "a click that is not 0 or 1"),
        (["q\t1\t", result(1, url="")], 2, "a result without an id"),
        ([result(1), "q\t1\t"], 1, "a result before any query"),
        (["", "\t1\t", result(1)], 2, "a query without an id"),
        (["q\t1\t", result(1), result(2), "q\t1", result(1)], 4, "neither a query"),
    ],
)
@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_broken_lines(tmp_path: Path, lines: list[str], line: int, reason: str, chunk: int) -> None:
    path = tmp_path / "part-00000"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(EluteError, match=f"part-00000: line {line}: {reason}"):
        read(path, chunk)


def test_what_a_broken_query_leaves_behind_is_no_result_of_another(tmp_path: Path) -> None:
    lines = [
        "q\t1\t",
        result(1, "a"),
        result(2, "b"),
        "r\tcut",
        result(1, "c"),
        result(2, "d"),
        "s\t1\t",
        result(1, "e"),
    ]
    path = tmp_path / "part-00000"
    path.write_text("\n".join([*lines, "\t1\t", result(1, "f"), "t\t1\t", result(1, "g")]))
    rows, tally = read(path, skip=True)
    assert [row[1:3] for row in rows] == [("q", "a"), ("q", "b"), ("s", "e"), ("t", "g")]
    assert [problem.line for problem in tally.problems] == [4, 5, 6, 9, 10]
    assert tally.malformed == 5

"""Sessions read from Parquet, as rows and as lists, at once and in parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elute.errors import EluteError
from elute.io import sessions as io
from elute.io.sessions import LISTS, ROWS, SessionParts, read_sessions, read_vocabulary

PAGES = [("q1", ["a", "b", "c"], [0, 1, 0]), ("q2", ["a"], [1]), ("q1", ["c", "a"], [0, 0]), ("q3", ["d", "e"], [1, 1])]


def rows(pages, order=None) -> pa.Table:
    flat = [
        (i, q, d, k + 1, c)
        for i, (q, docs, clicks) in enumerate(pages)
        for k, (d, c) in enumerate(zip(docs, clicks, strict=True))
    ]
    if order is not None:
        flat = [flat[i] for i in order]
    names = ("session_id", "query_id", "doc_id", "position", "click")
    return pa.table({name: [row[i] for row in flat] for i, name in enumerate(names)})


def lists(pages) -> pa.Table:
    return pa.table(
        {
            "query_id": [q for q, _, _ in pages],
            "query_doc_ids": [[f"{q}\t{d}" for d in docs] for q, docs, _ in pages],
            "clicks": [clicks for _, _, clicks in pages],
        }
    )


def told(sessions, vocabulary) -> list[tuple[str, list[str], list[int]]]:
    """Sessions in words again."""
    queries, items = vocabulary.queries.to_pylist(), [*vocabulary.documents.to_pylist(), "?"]
    return [
        (queries[q], [items[d] for d in docs[:n]], clicks[:n].tolist())
        for q, docs, clicks, n in zip(sessions.query, sessions.doc, sessions.click, sessions.length, strict=True)
    ]


EXPECTED = [(q, [f"{q}\t{d}" for d in docs], clicks) for q, docs, clicks in PAGES]


def test_rows_and_lists_give_the_same_sessions(tmp_path) -> None:
    pq.write_table(rows(PAGES), tmp_path / "rows.parquet")
    pq.write_table(lists(PAGES), tmp_path / "lists.parquet")
    assert told(*read_sessions(tmp_path / "rows.parquet")) == EXPECTED
    assert told(*read_sessions(tmp_path / "lists.parquet", LISTS)) == EXPECTED


def test_rows_in_any_order_within_the_file(tmp_path) -> None:
    order = np.random.default_rng(0).permutation(8)
    pq.write_table(rows(PAGES, order), tmp_path / "rows.parquet")
    assert sorted(map(str, told(*read_sessions(tmp_path / "rows.parquet")))) == sorted(map(str, EXPECTED))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("form", ["rows", "lists"])
def test_parts_are_the_whole_and_can_be_read_again(tmp_path, monkeypatch, size, form) -> None:
    monkeypatch.setattr(io, "_ROWS", size)
    columns = LISTS if form == "lists" else ROWS
    pq.write_table(rows(PAGES) if form == "rows" else lists(PAGES), tmp_path / "log.parquet")
    vocabulary = read_vocabulary(tmp_path / "log.parquet", columns)
    parts = SessionParts(tmp_path / "log.parquet", vocabulary, columns)
    for _ in range(2):
        assert [page for part in parts for page in told(part, vocabulary)] == EXPECTED


def test_what_the_vocabulary_lacks_is_its_last_number(tmp_path) -> None:
    pq.write_table(rows(PAGES[:1]), tmp_path / "train.parquet")
    pq.write_table(rows([("q1", ["z", "a"], [0, 1])]), tmp_path / "test.parquet")
    _, vocabulary = read_sessions(tmp_path / "train.parquet")
    test, same = read_sessions(tmp_path / "test.parquet", vocabulary=vocabulary)
    assert same is vocabulary and vocabulary.n_documents == 4
    assert told(test, vocabulary) == [("q1", ["?", "q1\ta"], [0, 1])]
    assert test.doc[0, 0] == 3


def test_without_a_query_column_all_are_of_one(tmp_path) -> None:
    pq.write_table(lists(PAGES).drop_columns(["query_id"]), tmp_path / "lists.parquet")
    sessions, vocabulary = read_sessions(tmp_path / "lists.parquet", LISTS)
    assert not sessions.query.any() and vocabulary.n_queries == 2


def test_what_cannot_be_read_is_refused_in_one_line(tmp_path) -> None:
    def refused(table, match, columns=ROWS):
        pq.write_table(table, tmp_path / "bad.parquet")
        with pytest.raises(EluteError, match=match) as caught:
            read_sessions(tmp_path / "bad.parquet", columns)
        assert "\n" not in str(caught.value)

    refused(rows(PAGES).drop_columns(["position"]), "no column 'position'")
    refused(rows(PAGES, [0, 2]), "position 3 where 2 is expected")
    refused(rows(PAGES).set_column(2, "doc_id", pa.array([None] * 8, pa.string())), "8 rows")
    uneven = lists(PAGES).set_column(2, "clicks", pa.array([[0], [1], [0, 0], [1, 1]]))
    refused(uneven, "row 0", LISTS)
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(EluteError, match="cannot be read as Parquet"):
        read_sessions(tmp_path / "no.parquet")


@pytest.mark.parametrize("wrong", [-1, 2, 0.5, float("nan"), "a"])
@pytest.mark.parametrize("make", [rows, lists])
def test_a_click_is_0_or_1(make, wrong, tmp_path) -> None:
    pages = [(q, docs, [str(c) if isinstance(wrong, str) else c for c in clicks]) for q, docs, clicks in PAGES]
    pages[0][2][0] = wrong
    pq.write_table(make(pages), tmp_path / "log.parquet")
    with pytest.raises(EluteError, match="clicks of sessions are"):
        read_sessions(tmp_path / "log.parquet", ROWS if make is rows else LISTS)

"""UBI: every shape in which stacks write it gives the same log, and so does a plain join."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.io.logs import ubi
from elute.io.logs.tally import Tally

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)

Record = dict[str, Any]


def query(page: str, text: str | None, hits: list[Any] | None) -> Record:
    return {
        "application": "shop",
        "query_id": page,
        "client_id": "c1",
        "user_query": text,
        "query_response_hit_ids": hits,
        "timestamp": "2026-01-01T00:00:00.000Z",
    }


def event(page: str | None, doc: str | None, ordinal: int | None = None, action: str = "click") -> Record:
    attributes: Record = {"object": {"object_id": doc, "object_id_field": "sku"}}
    if ordinal is not None:
        attributes["position"] = {"ordinal": ordinal}
    return {"action_name": action, "query_id": page, "message": "x", "event_attributes": attributes}


def flat(record: Record, prefix: str = "") -> Record:
    """Objects in objects as dotted names."""
    pairs = [
        flat(value, f"{prefix}{key}.").items() if isinstance(value, dict) else [(prefix + key, value)]
        for key, value in record.items()
    ]
    return dict(pair for some in pairs for pair in some)


def ndjson(path: Path, records: list[Any]) -> Path:
    text = "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(*paths: Path, chunk: int = 1 << 20, skip: bool = False) -> tuple[list[tuple[Any, ...]], Tally]:
    tally = Tally(skip=skip)
    tables = list(ubi.read(list(paths), tally, chunk_bytes=chunk))
    rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    return rows, tally


def plain(records: list[Record]) -> tuple[list[tuple[Any, ...]], int, int]:
    """Record by record: first document of a query_id, clicks on its results, orphans, repeated clicks."""
    pages: dict[str, Record] = {}
    for record in records:
        if "action_name" not in record and record["query_response_hit_ids"] and record["user_query"] is not None:
            pages.setdefault(record["query_id"], record)
    clicks = [
        (record["query_id"], record["event_attributes"]["object"]["object_id"])
        for record in records
        if record.get("action_name") == "click"
    ]
    rows = [
        (page, record["user_query"], doc, place, int((page, doc) in clicks))
        for page, record in pages.items()
        for place, doc in enumerate(record["query_response_hit_ids"], start=1)
        if doc not in record["query_response_hit_ids"][: place - 1]
    ]
    shown = {(row[0], row[2]) for row in rows}
    orphans = sum(click not in shown for click in clicks)
    return rows, orphans, len(clicks) - orphans - len(shown & set(clicks))


RECORDS = [
    query("p1", "lamp", ["a", "b", "c"]),
    query("p2", "lamp", ["c", "a"]),
    query("p3", "desk", ["a"]),
    event("p1", "b", 1),
    event("p1", "b", 1),
    event("p2", "c", 0),
    event("p2", "c", None, "add_to_cart"),
    event("p2", "b", 1),
    event("p9", "a", 0),
    event(None, "a", 0),
    event("p3", None),
]
LOG = [
    ("p1", "lamp", "a", 1, 0),
    ("p1", "lamp", "b", 2, 1),
    ("p1", "lamp", "c", 3, 0),
    ("p2", "lamp", "c", 1, 1),
    ("p2", "lamp", "a", 2, 0),
    ("p3", "desk", "a", 1, 0),
]


def shapes(folder: Path) -> dict[str, list[Path]]:
    """The same records as different stacks write them."""
    queries, events = RECORDS[:3], RECORDS[3:]
    bulk = [line for record in RECORDS for line in ({"index": {"_index": "ubi"}}, record)]
    text = [{**record, "event_attributes": json.dumps(record["event_attributes"])} for record in events]

    def parquet(name: str, records: list[Record]) -> Path:
        pq.write_table(pa.Table.from_pylist(records), folder / name)
        return folder / name

    in_parquet = parquet("q.parquet", queries)
    return {
        "nested": [ndjson(folder / "q.ndjson", queries), ndjson(folder / "e.ndjson", events)],
        "events first": [folder / "e.ndjson", folder / "q.ndjson"],
        "flat": [folder / "q.ndjson", ndjson(folder / "flat.ndjson", [flat(record) for record in events])],
        "gzip": [ndjson(folder / "both.ndjson.gz", RECORDS)],
        "dump": [ndjson(folder / "dump.ndjson", [{"_index": "ubi", "_source": record} for record in RECORDS])],
        "bulk": [ndjson(folder / "bulk.ndjson", bulk)],
        "parquet": [in_parquet, parquet("e.parquet", events)],
        "flat parquet": [in_parquet, parquet("f.parquet", [flat(record) for record in events])],
        "json in parquet": [in_parquet, parquet("t.parquet", text)],
        "mixed": [in_parquet, folder / "e.ndjson"],
    }


def test_every_shape_gives_the_same_log(tmp_path: Path) -> None:
    for shape, paths in shapes(tmp_path).items():
        rows, tally = read(*paths)
        assert rows == LOG, shape
        assert (tally.sessions, tally.orphans, tally.repeated_clicks, tally.malformed) == (3, 4, 1, 0), shape
        assert tally.actions == {"click": 7, "add_to_cart": 1}, shape
        assert tally.position_base == 0, shape
        figures = {"queries": 3, "events": 8, "click_events": 7, "clicks_with_position": 2, "positions_agree": 2}
        assert {name: tally.figures[name] for name in figures} == figures, shape


docs = st.sampled_from(["a", "b", "c", "d"])
record = st.one_of(
    st.builds(
        query,
        st.sampled_from(["p1", "p2", "p3", "p4"]),
        st.sampled_from(["lamp", "", None, 'l\'amp "ü" 灯']),
        st.one_of(st.none(), st.lists(docs, max_size=4)),
    ),
    st.builds(event, st.sampled_from(["p1", "p2", "p3", "p4", "p5", None]), docs),
)


@same_folder
@given(records=st.lists(record, min_size=1, max_size=20), chunk=st.integers(1, 3000))
def test_as_a_plain_join(tmp_path: Path, records: list[Record], chunk: int) -> None:
    rows, tally = read(ndjson(tmp_path / "both.ndjson", records), chunk=max(chunk, 200))
    expected, orphans, repeated = plain(records)
    assert sorted(rows) == sorted(expected)
    assert (tally.orphans, tally.repeated_clicks) == (orphans, repeated)


@pytest.mark.parametrize(
    ("ordinals", "base", "agree"),
    [([0, 1, 2], 0, 3), ([1, 2, 3], 1, 3), ([1, 2, 9], 1, 2), ([None, None, None], None, 0)],
)
def test_what_clients_count_positions_from(
    tmp_path: Path, ordinals: list[int | None], base: int | None, agree: int
) -> None:
    clicks = [event("p1", doc, ordinal) for doc, ordinal in zip("abc", ordinals, strict=True)]
    rows, tally = read(ndjson(tmp_path / "both.ndjson", [query("p1", "lamp", ["a", "b", "c"]), *clicks]))
    assert [row[3] for row in rows] == [1, 2, 3]
    assert (tally.position_base, tally.figures.get("positions_agree", 0)) == (base, agree)


def test_ids_that_are_numbers(tmp_path: Path) -> None:
    rows, _ = read(ndjson(tmp_path / "both.ndjson", [query("p1", "lamp", [1, 22]), event("p1", 22, 0)]))  # type: ignore[arg-type]
    assert rows == [("p1", "lamp", "1", 1, 0), ("p1", "lamp", "22", 2, 1)]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    records = [
        query("p1", "lamp", []),
        query("p2", None, ["a"]),
        query("p3", "desk", ["a"]),
        query("p3", "desk", ["b"]),
    ]
    rows, tally = read(ndjson(tmp_path / "q.ndjson", records))
    assert rows == [("p3", "desk", "a", 1, 0)]
    counted = ("queries", "queries_without_results", "queries_without_text", "repeated_queries")
    assert [tally.figures[name] for name in counted] == [4, 1, 1, 1]


def test_malformed_lines_by_number(tmp_path: Path) -> None:
    no_action = {key: value for key, value in event("p1", "a").items() if key != "action_name"}
    lines = [query("p1", "lamp", ["a"]), "{cut", "", {"x": 1}, no_action, query("p2", "lamp", ["a", None]), '"text"']
    path = ndjson(tmp_path / "q.ndjson", lines)
    with pytest.raises(EluteError, match=r"q\.ndjson: line 2: not a JSON object.*`skip_malformed=True`"):
        read(path)
    for chunk in (200, 1 << 20):
        rows, tally = read(path, chunk=chunk, skip=True)
        assert rows == [("p1", "lamp", "a", 1, 0)]
        assert [problem.line for problem in tally.problems] == [2, 4, 5, 6, 7]
        assert tally.problems[2].reason == "an event without action_name"


def test_lines_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "q.ndjson").write_bytes(b'{"query_id": "\xff"}\n' + json.dumps(query("p1", "灯", ["ä"])).encode())
    rows, tally = read(tmp_path / "q.ndjson", skip=True)
    assert rows == [("p1", "灯", "ä", 1, 0)]
    assert [(problem.line, problem.reason) for problem in tally.problems] == [(1, "not a JSON object")]


def test_malformed_rows_of_parquet(tmp_path: Path) -> None:
    rows = [query("p1", "lamp", ["a"]), query("", "lamp", ["a"]), query("p3", "lamp", ["b"])]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "q.parquet")
    with pytest.raises(EluteError, match=r"q\.parquet: row 2: neither an event nor a query with a query_id"):
        read(tmp_path / "q.parquet")

"""Each health warning appears where it should, with the right count, and nowhere else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import elute


def log(**columns: list[Any]) -> dict[str, list[Any]]:
    """400 impressions on two positions: ten documents of two queries, both positions, ten times each."""
    rows = [(q, f"{q}{d}", p) for q in "ab" for d in range(10) for p in (1, 2) for _ in range(10)]
    base: dict[str, list[Any]] = {
        "query_id": [row[0] for row in rows],
        "doc_id": [row[1] for row in rows],
        "position": [row[2] for row in rows],
        "click": [i % 5 == 0 for i in range(len(rows))],
    }
    return {**base, **columns}


def found(table: dict[str, list[Any]], **roles: Any) -> dict[str, tuple[int, str]]:
    concerns = elute.check(elute.read_log(pa.table(table), **roles)).warnings
    return {concern.code: (concern.count, concern.message) for concern in concerns}


def test_a_healthy_log_has_no_warning() -> None:
    assert found(log()) == {}


def test_null_ids_are_dropped_and_counted() -> None:
    table = log()
    table["doc_id"][:3] = [None] * 3
    table["position"][2:5] = [None] * 3
    count, message = found(table)["null_ids"]
    assert count == 5
    assert "doc_id (3)" in message
    assert "position (3)" in message


def test_positions_that_start_at_zero() -> None:
    table = log()
    table["position"] = [p - 1 for p in table["position"]]
    assert found(table)["position_from_zero"][0] == 200
    table["temperature"] = table["position"]
    assert "position_from_zero" not in found(table, bias="temperature")


def test_an_item_twice_on_one_page() -> None:
    table = log(page=list(range(400)))
    assert found(table, session="page") == {}
    table["page"][11] = table["page"][0]  # same document, position 2 and 1, one page
    table["page"][399] = table["page"][0]  # another document on that page
    assert found(table, session="page")["repeated_on_page"][0] == 1


def test_thin_factors_and_factors_without_clicks() -> None:
    table = log()
    table["position"][:99] = [3] * 99
    assert found(table)["thin_factors"][0] == 1
    assert "position 3" in found(table)["thin_factors"][1]
    table["click"] = [c and p != 2 for c, p in zip(table["click"], table["position"], strict=True)]
    assert found(table)["factors_without_clicks"][0] == 1
    assert "position 2" in found(table)["factors_without_clicks"][1]


def test_one_query_with_most_impressions() -> None:
    table = log()
    table["query_id"][200:201] = ["a"]
    count, message = found(table)["dominant_query"]
    assert count == 201
    assert "'a'" in message


def test_items_seen_once() -> None:
    table = log()
    table["doc_id"][0] = "new"
    table["doc_id"][200] = "also new"
    assert found(table)["items_seen_once"][0] == 2


def test_crossed_items_and_queries_count_impressions_of_queries() -> None:
    """An item shared by queries: impressions still belong to the query of each row."""
    table = log()
    table["doc_id"] = [doc[1:] for doc in table["doc_id"]]
    assert found(table, item="doc_id") == {}
    table["query_id"][200:201] = ["a"]
    assert found(table, item="doc_id")["dominant_query"][0] == 201

"""Pages are what the log's rows say, whatever their order, their types and the file's format."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elute._util.storage import MEMORY, DiskStorage
from elute.errors import EluteError
from elute.io.features import Features
from elute.log import read_log
from elute.training.pages import TrainingPages, _number_places
from elute.training.task import Inputs, build_task
from reference.crafted_ids import craft_pairs


def features_of(rows: list[dict[str, Any]]) -> Features:
    items = sorted({(row["query_id"], row["doc_id"]) for row in rows})
    key = pa.table(dict(zip(("query_id", "doc_id"), (pa.array(c) for c in zip(*items, strict=True)), strict=True)))
    return Features(key, ("x",), np.arange(len(items), dtype=np.float32)[:, None], "features")


def posed(table: pa.Table, features: Features, learner: str = "dla") -> TrainingPages:
    with read_log(table) as log:
        return build_task(log, features, Inputs(learner)).pages


def plain(rows: list[dict[str, Any]], features: Features) -> set[tuple[Any, ...]]:
    """Every page as (document, click, score) in the order shown, by dictionaries."""
    place = {tuple(name.values()): number for number, name in enumerate(features.key.to_pylist())}
    pages = defaultdict(list)
    for row in rows:
        document = place[row["query_id"], row["doc_id"]]
        pages[row["session_id"], row["query_id"]].append((row["position"], document, row["click"], row["score"]))
    return {tuple(shown[1:] for shown in sorted(page)) for page in pages.values()}


def as_set(pages: TrainingPages) -> set[tuple[Any, ...]]:
    assert pages.scores is not None
    out = set()
    for documents, clicks, scores in zip(pages.documents, pages.clicks, pages.scores, strict=True):
        n = int((documents >= 0).sum())
        assert (documents[n:] == -1).all()
        assert not clicks[n:].any()
        out.add(tuple(zip(documents[:n].tolist(), clicks[:n].tolist(), scores[:n].tolist(), strict=True)))
    return out


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Whole pages, rows in any order; scores differ on all rows, so that pages do."""
    rows, number = [], 0
    for session in range(draw(st.integers(1, 6))):
        for query in draw(st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)):
            shown = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
            for position, doc in enumerate(shown, 1):
                number += 1
                ids = {"session_id": session, "query_id": query, "doc_id": f"d{doc}", "position": position}
                rows.append({**ids, "click": draw(st.integers(0, 1)), "score": number / 4})
    return draw(st.permutations(rows))


def test_pages_made_up_to_share_a_hash_are_told_apart() -> None:
    """Session and query are such pairs: by their hashes alone, all were one page of eighty places."""
    rows = [
        {"session_id": s, "query_id": q, "doc_id": f"d{p}", "position": p, "click": p % 2, "score": n + p / 4}
        for n, (s, q) in enumerate(craft_pairs(40))
        for p in (1, 2)
    ]
    features = features_of(rows)
    pages = posed(pa.Table.from_pylist(rows), features, "upe")
    assert pages.documents.shape == (40, 2)
    assert as_set(pages) == plain(rows, features)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_pages_are_what_dictionaries_make_of_the_rows(rows: list[dict[str, Any]]) -> None:
    features = features_of(rows)
    pages = posed(pa.Table.from_pylist(rows), features, "upe")
    assert as_set(pages) == plain(rows, features)
    shown = pages.documents >= 0
    assert (pages.factor[shown] == np.broadcast_to(np.arange(shown.shape[1]), shown.shape)[shown]).all()


ROWS: list[dict[str, Any]] = [
    {"session_id": 1, "query_id": 7, "doc_id": "a", "position": 1, "click": 1, "score": 2.0},
    {"session_id": 1, "query_id": 7, "doc_id": "b", "position": 2, "click": 0, "score": 1.0},
    {"session_id": 2, "query_id": 7, "doc_id": "b", "position": 1, "click": 0, "score": 4.0},
    {"session_id": 2, "query_id": 7, "doc_id": "a", "position": 2, "click": 1, "score": 3.0},
]


def test_a_csv_gives_the_same_pages_as_parquet(tmp_path: Path) -> None:
    table, features = pa.Table.from_pylist(ROWS), features_of(ROWS)
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    pq.write_table(table, tmp_path / "log.parquet")
    found = []
    for name in ("log.csv", "log.parquet"):
        with read_log(tmp_path / name) as log:
            found.append(build_task(log, features, Inputs("upe")).pages)
    assert as_set(found[0]) == as_set(found[1]) == plain(ROWS, features)
    assert found[0].factor.tolist() == found[1].factor.tolist() == [[0, 1], [0, 1]]


def test_positions_may_count_from_0() -> None:
    rows = [row | {"position": row["position"] - 1} for row in ROWS]
    assert as_set(posed(pa.Table.from_pylist(rows), features_of(rows), "upe")) == plain(ROWS, features_of(ROWS))


def test_features_may_be_by_document_alone() -> None:
    key = pa.table({"doc_id": ["a", "b"]})
    pages = posed(pa.Table.from_pylist(ROWS), Features(key, ("x",), np.zeros((2, 1), np.float32), "features"))
    assert sorted(pages.documents.tolist()) == [[0, 1], [1, 0]]


def test_weights_go_by_all_bias_columns() -> None:
    rows = [row | {"device": "pc" if row["session_id"] == 1 else "phone"} for row in ROWS]
    table = pa.Table.from_pylist(rows)
    chances = {(1, "pc"): 0.8, (1, "phone"): 0.4, (2, "pc"): 0.2, (2, "phone"): 0.1}
    columns = dict(zip(("position", "device"), zip(*chances, strict=True), strict=True))
    known = pa.table({**columns, "propensity": list(chances.values())})
    with read_log(table, bias="position,device") as log:
        task = build_task(log, features_of(rows), Inputs("ipw", propensities=known))
    wanted = {(1.0, 0.0), (0.0, 0.8 / 0.1)}
    assert {tuple(np.round(row, 5).tolist()) for row in task.compute_targets()} == wanted


def test_pages_on_disk_are_those_in_memory(tmp_path: Path) -> None:
    table, features = pa.Table.from_pylist(ROWS[:3]), features_of(ROWS)
    with read_log(table) as log:
        found = [
            build_task(log, features, Inputs("upe"), storage=storage).pages
            for storage in (MEMORY, DiskStorage(tmp_path))
        ]
    for name, here, there in zip(TrainingPages._fields, *found, strict=True):
        assert isinstance(there, np.memmap), name
        np.testing.assert_array_equal(here, there)
    assert found[0].documents.tolist() == [[0, 1], [1, -1]] or found[0].documents.tolist() == [[1, -1], [0, 1]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_places_count_on_wherever_the_rows_are_cut(lengths: list[int], data: st.DataObject) -> None:
    page = np.repeat(np.arange(len(lengths)), lengths)
    place = np.concatenate([np.arange(length) for length in lengths])
    table = pa.table({"page": page.astype(np.uint64) * 7 + 3, "position": place + 1})
    cuts = sorted(data.draw(st.sets(st.integers(0, len(page)))) | {0, len(page)})
    batches = [b for a, z in pairwise(cuts) for b in table.slice(a, z - a).to_batches()]
    found = list(_number_places(pa.RecordBatchReader.from_batches(table.schema, batches)))
    np.testing.assert_array_equal(np.concatenate([pages for pages, _, _ in found]), page)
    np.testing.assert_array_equal(np.concatenate([places for _, places, _ in found]), place)
    np.testing.assert_array_equal(np.concatenate([columns["position"] for _, _, columns in found]), place + 1)


@pytest.mark.parametrize("at_a_time", [1, 3, 1 << 18])
def test_a_gap_is_refused_only_where_positions_must_be_whole(at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elute.training.pages._ROWS", at_a_time)
    rows = [row | {"position": 3 if row["position"] == 2 else 1} for row in ROWS]
    table, features = pa.Table.from_pylist(rows), features_of(rows)
    with pytest.raises(EluteError, match="on 2 of 2 pages 'position' does not count from 1 without gaps"):
        posed(table, features)
    assert sorted(posed(table, features, "naive").documents.tolist()) == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("change", "learner", "bias", "message"),
    [
        ({"doc_id": "new"}, "dla", "position", r"4 of 4 impressions show documents without features .*doc_id new"),
        ({"doc_id": None, "item": 1}, "dla", "position", "has no row that names a document by query_id, doc_id"),
        ({"session_id": None}, "dla", "position", "'session_id' is null in 4 rows"),
        ({"score": None}, "upe", "position", "'score' is not a finite number in 4 rows|has .* values"),
        ({"device": 1}, "dla", "position,device", "propensities by position only, not by position, device"),
    ],
)
def test_what_cannot_be_used(change: dict[str, Any], learner: str, bias: str, message: str) -> None:
    table = pa.Table.from_pylist([row | change for row in ROWS])
    item = "item" if "item" in change else None
    with read_log(table, bias=bias, item=item) as log, pytest.raises(EluteError, match=message):
        build_task(log, features_of(ROWS), Inputs(learner))

"""The logging policy beside a ranker: mean positions by plain loops, and metrics of their order by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from elute.auditing.ranking_metrics import ndcg
from elute.io.features import read_judged
from elute.ranking.data import RankingData
from elute.training.logged_order import read_logged_order
from elute.training.pages import PageColumns
from elute.training.quality import compare_with_log

LETOR = "docs/data/letor.txt"
NAMES = tuple(f"feature_{i}" for i in range(1, 5))


def read_positions(log: elute.ClickLog, data: RankingData, key: tuple[str, str] = ("query_id", "doc_id")) -> np.ndarray:
    asked = PageColumns(log.roles, "position", None, False, log.filters)
    return read_logged_order(log.source, asked, key, {"test": data})["test"]


def test_mean_positions_are_those_of_the_rows_that_pass(tmp_path: Path) -> None:
    elute.simulate(LETOR, tmp_path / "clicks.parquet", sessions=60, seed=2)
    data = read_judged([LETOR], ("query_id", "doc_id"), NAMES)
    seen = defaultdict(list)
    for row in pq.read_table(tmp_path / "clicks.parquet").to_pylist():
        if row["position"] <= 4:
            seen[str(row["query_id"]), str(row["doc_id"])].append(row["position"])
    ids = zip(data.queries[data.query_of], data.documents, strict=True)
    wanted = [np.mean(seen[one]) if seen[one] else np.inf for one in ids]
    with elute.read_log(tmp_path / "clicks.parquet", max_position=4) as log:
        np.testing.assert_allclose(read_positions(log, data), wanted)
    assert np.isinf(wanted).any()
    assert np.isfinite(wanted).any()


def test_ids_may_be_numbers_in_the_log_and_queries_missing() -> None:
    table = pa.table(
        {"query_id": [7, 7, 7, 7], "doc_id": [1, 2, 1, 2], "position": [1, 2, 2, 3], "click": [1, 0, 0, 0]}
    )
    names = np.array(["1", "2", "3", "1"])
    data = RankingData(
        np.zeros((4, 1), np.float32), np.zeros(4, np.int32), np.array([0, 3, 4]), np.array(["7", "8"]), names
    )
    with elute.read_log(table) as log:
        assert read_positions(log, data).tolist() == [1.5, 2.5, np.inf, np.inf]
        asked = PageColumns(log.roles, "position", None, False, log.filters)
        assert read_logged_order(log.source, asked, ("query", "doc_id"), {"test": data}) == {}
        assert read_logged_order(log.source, asked, ("query_id", "doc_id"), {}) == {}


def test_the_comparison_is_over_the_queries_that_the_log_shows() -> None:
    """Of three queries, one is shown right, one wrong and one not at all."""
    grades = np.array([2, 0, 0, 1, 3, 0], np.int32)
    names = np.arange(6).astype(np.str_)
    data = RankingData(grades[:, None].astype(np.float32), grades, np.array([0, 2, 4, 6]), names[:3], names)
    position = np.array([1.0, 2.0, 1.5, np.inf, np.inf, np.inf])
    found = compare_with_log(lambda x: x[:, 0], {"test": data}, {"test": position})["test"]
    second = 1 / np.log2(3)
    assert (found["queries"], found["of_queries"]) == (2, 3)
    assert found["logged"]["ndcg@10"] == pytest.approx((1 + second) / 2)
    assert found["ranker_less_logged"]["ndcg@10"] == pytest.approx((1 - second) / 2)
    assert found["ranker_less_logged_se"]["ndcg@10"] == pytest.approx((1 - second) / 2)
    assert found["logged"]["err@1"] == pytest.approx((3 / 8 + 0) / 2)
    none = compare_with_log(lambda x: x[:, 0], {"test": data}, {"test": np.full(6, np.inf)})["test"]
    assert none == {"queries": 0, "of_queries": 3}


def test_training_has_it_beside_its_metrics(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    elute.simulate(LETOR, tmp_path / "clicks.parquet", sessions=200, seed=2)
    how: dict[str, Any] = {"learner": "naive", "model": "lightgbm", "steps": 2}
    found = elute.train(tmp_path / "clicks.parquet", LETOR, tmp_path / "out", **how, test=LETOR)
    data = read_judged([LETOR], ("query_id", "doc_id"), NAMES)
    with elute.read_log(tmp_path / "clicks.parquet") as log:
        position = read_positions(log, data)
    beside = found.baselines["test"]
    assert beside["queries"] == beside["of_queries"] == data.n_queries
    wanted = ndcg(data.grades, -position, data.offsets, 5).mean
    assert beside["logged"]["ndcg@5"] == pytest.approx(wanted)
    assert beside["ranker_less_logged"]["ndcg@5"] == pytest.approx(found.metrics["test"]["ndcg@5"] - wanted)

"""A real log, from its clicks to every format, each loaded by its consumer."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xgboost
from click.testing import CliRunner
from sklearn.datasets import load_svmlight_file

from elute.cli import main

QUERIES, ITEMS = 20, 1_024


def elute(*arguments: object) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit, and features of the documents: how often they were shown, and where on average."""
    folder = tmp_path_factory.mktemp("yandex")
    elute("fit", data / "yandex" / "train.parquet", "--out", folder / "fit")
    shown = pq.read_table(data / "yandex" / "train.parquet").group_by(["query_id", "doc_id"])
    table = shown.aggregate([("position", "mean"), ("position", "count")])
    pq.write_table(table, folder / "features.parquet")
    return folder


def ratings_in(path: Path) -> dict[tuple[str, str], int]:
    with path.open(newline="") as file:
        return {(row["query"], row["docid"]): int(row["rating"]) for row in csv.DictReader(file)}


def test_judgments(folder: Path) -> None:
    fit, out = folder / "fit", folder / "out"
    made = elute("judge", fit, "--format", "quepid", "--out", out)
    ratings = ratings_in(out)
    assert (made["judgments"], made["queries"]) == (len(ratings), len({q for q, _ in ratings}))
    assert made["judgments"] + sum(made["withheld"].values()) == ITEMS
    assert 10 < made["judgments"] < ITEMS / 10 and 5 < made["queries"] <= QUERIES
    evidence = pq.read_table(folder / "out.evidence.parquet").to_pylist()
    table = {(row["query_id"], row["doc_id"]): row for row in pq.read_table(fit / "relevance.parquet").to_pylist()}
    assert [(row["query_id"], row["doc_id"], row["grade"]) for row in evidence] == [
        (*pair, ratings[pair]) for pair in sorted(ratings)
    ]
    for row in evidence:
        item = table[row["query_id"], row["doc_id"]]
        assert (row["impressions"], row["clicks"]) == (item["impressions"], item["clicks"])
        assert 0.25 < row["confidence"] <= 1
    for query in {q for q, _ in ratings}:  # a grade apart is a higher relevance, query by query
        judged = [(table[pair]["relevance"], rating) for pair, rating in ratings.items() if pair[0] == query]
        assert all(r > s for r, one in judged for s, other in judged if one > other + 1)
    seen = {grade: [row["clicks"] > 0 for row in evidence if row["grade"] == grade] for grade in range(4)}
    assert all(seen[3])  # nothing that was never clicked has the highest grade

    elute("judge", fit, "--format", "opensearch", "--out", out)
    body = json.loads(out.read_text())["judgmentRatings"]
    assert {(e["query"], r["docId"]): int(r["rating"]) for e in body for r in e["ratings"]} == ratings

    elute("judge", fit, "--format", "ranklib", "--features", folder / "features.parquet", "--out", out)
    x, grade, qid = load_svmlight_file(str(out), query_id=True)
    assert x.shape == (len(ratings), 2) and grade.tolist() == [ratings[pair] for pair in sorted(ratings)]
    assert len(set(qid)) == made["queries"]


def test_all_items_with_a_mark(folder: Path) -> None:
    made = elute("judge", folder / "fit", "--format", "quepid", "--out", folder / "known")
    whole = elute("judge", folder / "fit", "--format", "quepid", "--all", "--out", folder / "all")
    ratings, known = ratings_in(folder / "all"), ratings_in(folder / "known")
    assert (whole["judgments"], whole["known"], whole["withheld"]) == (ITEMS, made["judgments"], {})
    evidence = pq.read_table(folder / "all.evidence.parquet").to_pylist()
    marked = {(row["query_id"], row["doc_id"]) for row in evidence if row["known"]}
    assert marked == known.keys() and {pair: ratings[pair] for pair in marked} == known


def test_qrels(folder: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    made = elute("judge", folder / "fit", "--format", "quepid", "--out", folder / "out")
    elute("judge", folder / "fit", "--format", "trec", "--out", folder / "qrels")
    read = list(ir_measures.read_trec_qrels(str(folder / "qrels")))
    assert {(q.query_id, q.doc_id): q.relevance for q in read} == ratings_in(folder / "out")
    assert len(read) == made["judgments"]


def test_precise_judgments_only(folder: Path) -> None:
    call = ("judge", folder / "fit", "--format", "quepid", "--out", folder / "out")
    whole = elute(*call)
    known = ratings_in(folder / "out")
    made = elute(*call, "--min-precision", 10)
    kept = ratings_in(folder / "out")
    table = pq.read_table(folder / "fit" / "relevance.parquet").to_pylist()
    error = {(row["query_id"], row["doc_id"]): row["relevance"] * row["log_se"] for row in table}
    assert kept == {pair: rating for pair, rating in known.items() if error[pair] <= 0.1}
    assert 5 < made["judgments"] == len(kept) <= whole["judgments"]
    assert made["left_out"]["imprecise"]["judgments"] == sum(e > 0.1 for e in error.values())


def test_bundles(data: Path, folder: Path) -> None:
    """Of a quarter of the pages, to be quick."""
    log = pq.read_table(data / "yandex" / "train.parquet", filters=pc.bit_wise_and(pc.field("session_id"), 3) == 0)
    pq.write_table(log, folder / "log.parquet")
    call = ("judge", folder / "fit", "--log", folder / "log.parquet", "--features")
    pages = len(set(zip(log["session_id"].to_pylist(), log["query_id"].to_pylist(), strict=True)))
    clicks = int(log["click"].to_numpy().sum())
    fitted = pq.read_table(folder / "fit" / "propensities.parquet").to_pylist()
    propensity = {row["position"]: row["propensity"] for row in fitted}
    clicked = log.filter(pc.field("click") == 1)["position"].to_pylist()
    total = sum(1 / propensity[position] for position in clicked)

    made = elute(*call, folder / "features.parquet", "--format", "lightgbm", "--out", folder / "lightgbm")
    assert made["clicks"] == clicks and made["pages"] + made["left_out"]["pages_without_click"] == pages
    how = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
    for name in ("weighted", "positions"):
        train = lightgbm.Dataset(str(folder / "lightgbm" / f"{name}.tsv"), params=how)
        model = lightgbm.train(how, train, 2)
        assert model.num_trees() == 2 and (np.asarray(train.get_group()) == 10).all()
        if name == "weighted":
            assert np.sum(np.asarray(train.get_weight())) / 10 == pytest.approx(total)
        else:
            assert np.bincount(np.asarray(train.get_position())).tolist() == [made["pages"]] * 10

    made = elute(*call, folder / "features.parquet", "--format", "xgboost", "--out", folder / "xgboost")
    weight = pq.read_table(folder / "xgboost" / "weighted.groups.parquet")["weight"]
    assert np.sum(weight.to_numpy()) == pytest.approx(total) and len(weight) == clicks
    for name, weights in (("weighted", weight), ("positions", None)):
        rows = pq.read_table(folder / "xgboost" / f"{name}.parquet")
        matrix = xgboost.DMatrix(
            rows.drop_columns(["label", "qid"]), label=rows["label"], qid=rows["qid"], weight=weights
        )
        settings = {"objective": "rank:ndcg", "lambdarank_unbiased": weights is None, "nthread": 1}
        assert xgboost.train(settings, matrix, 2).num_boosted_rounds() == 2
        assert len(matrix.get_uint_info("group_ptr")) - 1 == (clicks if weights is not None else made["pages"])

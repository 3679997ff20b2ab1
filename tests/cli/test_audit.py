"""`elute audit` end to end: on a simulated world whose answer is known, and on inputs that cannot be used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import ndcg_score

import elute
from conftest import call_elute
from elute.auditing.cmip.metric import Name
from elute.cli.verbs.audit import ESTIMATORS
from reference import plain_metrics as plain

LETOR = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"
KEY = ["query_id", "doc_id"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A noisy oracle ranked, users clicked by position; fitted with pbm, which is right, and naive, which is not."""
    folder = tmp_path_factory.mktemp("audit")
    log = folder / "world.parquet"
    assert call_elute("simulate", "--data", LETOR, "--sessions", 20_000, "--out", log).code == 0
    for sort in ("shifted", "later"):
        policy = ("--policy", "uniform") if sort == "shifted" else ()
        path = folder / f"{sort}.parquet"
        assert (
            call_elute("simulate", "--data", LETOR, *policy, "--sessions", 3_000, "--seed", 7, "--out", path).code == 0
        )
    for model in ("pbm", "naive"):
        assert call_elute("fit", log, "--model", model, "--out", folder / model).code == 0
    return folder


@pytest.fixture(scope="module")
def report(world: Path) -> dict[str, Any]:
    done = call_elute(
        "audit", "--fit", world / "pbm", "--fit", world / "naive", "--log", world / "world.parquet",
        "--labels", world / "world.truth.parquet", "--shifted-log", world / "shifted.parquet", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    return done.json


def predicted(world: Path, model: str, log: str) -> pd.DataFrame:
    """Every impression with its probability, row by row with pandas."""
    rows = pd.read_parquet(world / log)
    items = pd.read_parquet(world / model / "relevance.parquet")
    factors = pd.read_parquet(world / model / "propensities.parquet")
    typical = (items.relevance * items.impressions).sum() / items.impressions.sum()
    rows = rows.merge(items[[*KEY, "relevance", "impressions"]], how="left", on=KEY)
    rows = rows.merge(factors[["position", "propensity"]], how="left", on="position")
    p = rows.relevance.fillna(typical) * rows.propensity
    half = 0.5 / (rows.impressions.fillna(0) + 1)
    rows["p"] = np.where(p <= 0, half, np.where(p >= 1, 1 - half, p))
    return rows


@pytest.mark.parametrize(
    ("log", "mean", "at"),
    [
        ("world.parquet", "perplexity", "perplexity_at"),
        ("shifted.parquet", "ood_perplexity", "ood_perplexity_at"),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_perplexity_is_what_going_through_the_rows_gives(
    world: Path, report: dict[str, Any], number: int, log: str, mean: str, at: str
) -> None:
    model = report["models"][number]
    rows = predicted(world, model["name"], log)
    bits = -np.log2(np.where(rows.click == 1, rows.p, 1 - rows.p))
    expected = np.exp2(pd.Series(bits).groupby(rows.position).mean())
    np.testing.assert_allclose(model[at], expected, rtol=1e-12)
    assert model[mean] == pytest.approx(expected.mean(), rel=1e-12)
    if log == "shifted.parquet":
        assert any("items that the fit does not know" in note for note in model["notes"])


@pytest.mark.parametrize("number", [0, 1])
def test_ndcg_is_that_of_scikit_learn(world: Path, report: dict[str, Any], number: int) -> None:
    model = report["models"][number]
    rows = pd.read_parquet(world / "world.truth.parquet").merge(
        pd.read_parquet(world / model["name"] / "relevance.parquet"), on=KEY, suffixes=("_true", "")
    )
    lists = [(np.exp2(group.grade) - 1, group.relevance) for _, group in rows.groupby("query_id")]
    values = [ndcg_score([gain], [score]) for gain, score in lists if gain.max() > 0]
    assert model["ndcg"] == pytest.approx(np.mean(values), rel=1e-10)


@pytest.mark.parametrize("number", [0, 1])
def test_err_and_mrr_are_the_plain_ones(world: Path, report: dict[str, Any], number: int) -> None:
    model = report["models"][number]
    rows = pd.read_parquet(world / "world.truth.parquet").merge(
        pd.read_parquet(world / model["name"] / "relevance.parquet"), on=KEY, suffixes=("_true", "")
    )
    lists = [(q.grade.to_list(), q.relevance.to_list()) for _, q in rows.groupby("query_id") if q.grade.max() > 0]
    satisfied = [plain.err(*one, None, rows.grade.max(), "average") for one in lists]
    assert model["err"] == pytest.approx(np.mean(satisfied), rel=1e-10)
    assert model["mrr"] == pytest.approx(np.mean([plain.mrr(*one, None, 1, "average") for one in lists]), rel=1e-10)
    assert 0 < model["err"] < model["mrr"] <= 1


def test_queries_without_a_relevant_item_do_not_count(world: Path, tmp_path: Path) -> None:
    truth = pd.read_parquet(world / "world.truth.parquet")
    truth = truth[truth.kind == "item"][[*KEY, "grade"]]
    barren, rest = truth.assign(grade=truth.grade.where(truth.query_id != "1", 0)), truth[truth.query_id != "1"]
    found = []
    for name, labels in (("barren", barren), ("rest", rest)):
        labels.to_parquet(tmp_path / f"{name}.parquet")
        given = ("--labels", tmp_path / f"{name}.parquet")
        found.append(call_elute("audit", world / "pbm", "--log", world / "later.parquet", *given, "--json").json)
    for figure in ("ndcg", "err", "mrr"):
        assert found[0]["models"][0][figure] == pytest.approx(found[1]["models"][0][figure], rel=1e-12)
    assert found[0]["judged_items"] > found[1]["judged_items"]


def test_naive_echoes_the_policy_and_pbm_does_not(report: dict[str, Any]) -> None:
    """nDCG alone would choose the wrong one, as in Figure 1 of the paper; the shifted log shows that it is wrong."""
    pbm, naive = report["models"]
    assert (naive["verdict"], report["selected"]) == ("fail", "pbm")
    assert pbm["verdict"] != "fail"
    assert naive["ndcg"] > pbm["ndcg"]
    assert naive["ood_perplexity"] > pbm["ood_perplexity"] + 0.02
    assert naive["cmip"]["monotone"]["low"] > 0.1
    assert pbm["cmip"]["monotone"]["low"] < 0.01
    assert naive["cmip"]["low"] > pbm["cmip"]["high"]
    assert "follows the order of the logging policy" in naive["sentence"]


def test_the_fields(report: dict[str, Any]) -> None:
    fields = {"name", "model", "perplexity", "perplexity_at", "ndcg", "cmip", "ood_perplexity", "verdict", "sentence"}
    for model in report["models"]:
        assert fields <= set(model)
        assert {"estimate", "low", "high", "p_value", "estimator"} <= set(model["cmip"])
        assert model["cmip"]["estimator"] == "knn"
    assert report["positions"] == list(range(1, 11))
    assert report["selection"]["strategy"] == "top-4 CMIP, top-4 PPL: nDCG"


def test_the_references_are_the_click_rate_and_the_policy(world: Path, report: dict[str, Any]) -> None:
    rows = pd.read_parquet(world / "world.parquet")
    rate = rows.groupby("position").click.agg(lambda c: (c.sum() + 0.5) / (len(c) + 1))
    p = rows.position.map(rate)
    bits = pd.Series(-np.log2(np.where(rows.click == 1, p, 1 - p))).groupby(rows.position).mean()
    assert report["reference"]["perplexity_by_rank"] == pytest.approx(np.exp2(bits).mean(), rel=1e-12)
    assert 0.95 < report["reference"]["policy_ndcg"] < 1
    assert 0 < report["reference"]["policy_err"] < report["reference"]["policy_mrr"] <= 1


def test_cmip_is_that_of_the_library_on_the_rows_joined_by_hand(world: Path, report: dict[str, Any]) -> None:
    scores = pd.read_parquet(world / "world.parquet").groupby(KEY).score.mean().reset_index()
    rows = pd.read_parquet(world / "world.truth.parquet")[[*KEY, "grade"]]
    rows = rows.merge(pd.read_parquet(world / "naive" / "relevance.parquet"), on=KEY).merge(scores, on=KEY)
    found = elute.cmip(rows.relevance, rows.score, rows.grade)
    assert report["models"][1]["cmip"]["estimate"] == pytest.approx(found.estimate, abs=1e-9)
    assert report["models"][1]["cmip"]["p_value"] == found.p_value
    assert found.n + 12 == len(rows)
    assert found.notes == ("grades with fewer than 20 documents left out: 4 (12 documents)",)


def test_items_without_a_score_are_left_out_of_cmip_only(world: Path, tmp_path: Path, report: dict[str, Any]) -> None:
    scores = pd.read_parquet(world / "world.parquet").groupby(KEY).score.mean().reset_index().iloc[::2]
    scores.to_parquet(tmp_path / "scores.parquet")
    rows = pd.read_parquet(world / "world.truth.parquet")[[*KEY, "grade"]]
    rows = rows.merge(pd.read_parquet(world / "naive" / "relevance.parquet"), on=KEY).merge(scores, on=KEY)
    found = elute.cmip(rows.relevance, rows.score, rows.grade)
    done = call_elute(
        "audit", world / "naive", "--log", world / "world.parquet", "--labels", world / "world.truth.parquet",
        "--policy-scores", tmp_path / "scores.parquet", "--json",
    )  # fmt: skip
    model = done.json["models"][0]
    assert (model["cmip"]["n"], model["cmip"]["p_value"]) == (found.n, found.p_value)
    assert model["cmip"]["estimate"] == pytest.approx(found.estimate, abs=1e-9)
    assert model["ndcg"] == report["models"][1]["ndcg"]


def test_under_a_uniform_policy_the_click_rate_passes(world: Path, tmp_path: Path) -> None:
    """There positions are random, so that the click rate knows nothing of another policy's scores."""
    rows = pd.read_parquet(world / "world.parquet").groupby(KEY).score.mean().reset_index()
    rows.to_csv(tmp_path / "scores.csv", index=False)
    log = world / "shifted.parquet"
    assert call_elute("fit", log, "--model", "naive", "--out", tmp_path / "fair").code == 0
    done = call_elute(
        "audit", tmp_path / "fair", "--log", log, "--labels", world / "world.truth.parquet",
        "--policy-scores", tmp_path / "scores.csv", "--json",
    )  # fmt: skip
    model = done.json["models"][0]
    assert model["cmip"]["p_value"] > 0.05
    assert model["verdict"] == "pass", model["sentence"]
    assert "a later log would tell more" in model["notes"][0]


def test_what_is_missing_is_null_and_named(world: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.parquet"
    pq.write_table(pq.read_table(world / "later.parquet").drop_columns("score"), bare)
    unlabelled = call_elute("audit", "--fit", world / "pbm", "--log", bare, "--json").json["models"][0]
    assert (unlabelled["ndcg"], unlabelled["cmip"], unlabelled["ood_perplexity"]) == (None, None, None)
    assert unlabelled["verdict"] == "warn"
    assert "no labels (`labels=`)" in unlabelled["sentence"]
    assert not any("fitted to" in note for note in unlabelled["notes"])
    labels = ("--labels", world / "world.truth.parquet")
    unscored = call_elute("audit", "--fit", world / "pbm", "--log", bare, *labels, "--json").json["models"][0]
    assert unscored["ndcg"] > 0.9
    assert unscored["cmip"] is None
    assert "`policy_scores=`" in unscored["sentence"]
    assert "no labels (--labels)" in " ".join(call_elute("audit", "--fit", world / "pbm", "--log", bare).out.split())


def test_other_names_and_formats(world: Path, tmp_path: Path, report: dict[str, Any]) -> None:
    """The log and its fit with columns of their own, labels and scores as CSV with the usual names."""
    names = {"query_id": "q", "doc_id": "d", "position": "rank", "click": "clicked"}
    table = pq.read_table(world / "world.parquet").drop_columns("session_id")
    pq.write_table(table.rename_columns([names.get(n, n) for n in table.column_names]), tmp_path / "log.parquet")
    roles = ("--query", "q", "--doc", "d", "--bias", "rank", "--click", "clicked")
    assert call_elute("fit", tmp_path / "log.parquet", *roles, "--out", tmp_path / "pbm").code == 0
    truth = pd.read_parquet(world / "world.truth.parquet")
    truth[truth.kind == "item"][[*KEY, "grade"]].to_csv(tmp_path / "labels.csv", index=False)
    done = call_elute(
        "audit", "--fit", tmp_path / "pbm", "--log", tmp_path / "log.parquet", *roles,
        "--labels", tmp_path / "labels.csv", "--json",
    )  # fmt: skip
    expected = {**report["models"][0], "ood_perplexity": None, "ood_perplexity_at": None}
    for field in ("perplexity", "ndcg"):
        assert done.json["models"][0][field] == pytest.approx(expected[field], rel=1e-9)
    assert done.json["models"][0]["cmip"]["estimate"] == pytest.approx(expected["cmip"]["estimate"], abs=1e-9)


def test_a_page_for_people(world: Path) -> None:
    done = call_elute(
        "audit", "--fit", world / "pbm", world / "naive", "--log", world / "world.parquet",
        "--labels", world / "world.truth.parquet",
    )  # fmt: skip
    assert done.code == 0
    assert "Take pbm." in done.out
    assert "✗ naive" in done.out


def test_two_fits_of_one_name_are_told_apart(world: Path, tmp_path: Path) -> None:
    pair = (world / "pbm", shutil.copytree(world / "pbm", tmp_path / "pbm"))
    done = call_elute("audit", *pair, "--log", world / "later.parquet", "--json")
    assert [model["name"] for model in done.json["models"]] == [str(path) for path in pair]


def test_the_command_line_knows_every_estimator() -> None:
    assert Name.__args__ == ESTIMATORS  # type: ignore[attr-defined]


def _table(path: Path, **columns: list[object]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_what_cannot_be_used_is_said_in_one_line(world: Path, tmp_path: Path) -> None:
    log, pbm = ("--log", world / "world.parquet"), ("--fit", world / "pbm")
    truth = ("--labels", world / "world.truth.parquet")
    ungraded = _table(tmp_path / "ungraded.parquet", query_id=["1"], doc_id=["d1-1"])
    strange = _table(tmp_path / "strange.parquet", query_id=["x"], doc_id=["y"], grade=[1])
    twice = _table(tmp_path / "twice.parquet", query_id=["1", "1"], doc_id=["d1-1"] * 2, grade=[0, 1])
    words = _table(tmp_path / "words.parquet", query_id=["1"], doc_id=["d1-1"], grade=["good"])
    foreign = _table(tmp_path / "foreign.parquet", query_id=["x"], doc_id=["y"], score=[1.0])
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "fit.json").write_text(json.dumps({"model": "pbm"}))
    cases = [
        ((*pbm, *log, "--labels", tmp_path / "none.parquet"), "no file"),
        (("--fit", tmp_path / "nothing", *log), "has no fit.json; write one with 'elute fit"),
        (("--fit", broken, *log), "is not what 'elute fit' writes"),
        ((*pbm, *log, "--labels", ungraded), "has no column 'grade'"),
        ((*pbm, *log, "--labels", strange), "knows no item of"),
        ((*pbm, *log, "--labels", twice), "1 rows repeat an item, for instance 1·d1-1"),
        ((*pbm, *log, "--labels", words), "has values that are not numbers"),
        ((*pbm, *log, *truth, "--policy-scores", foreign), "has a score in"),
        ((*pbm, *log, "--bias", "position,score"), "was fitted with --bias position"),
        ((*pbm, *log, "--item", "doc_id"), "was fitted with --item query_id,doc_id"),
        ((*pbm, "--log", tmp_path / "gone.parquet"), "no file"),
        ((*pbm, *log, "--shifted-log", tmp_path / "gone.parquet"), "no file"),
    ]
    for arguments, says in cases:
        done = call_elute("audit", *arguments, "--json")
        assert (done.code, done.out) == (1, ""), (arguments, done.err)
        assert says in done.err, (arguments, done.err)
        assert len(done.err.strip().splitlines()) == 1, done.err
    assert call_elute("audit", *log).code == 2


def test_fewer_than_twenty_labels_leave_cmip_out(world: Path, tmp_path: Path) -> None:
    truth = pq.read_table(world / "world.truth.parquet").slice(0, 12)
    pq.write_table(truth, tmp_path / "few.parquet")
    done = call_elute(
        "audit", world / "pbm", "--log", world / "world.parquet", "--labels", tmp_path / "few.parquet", "--json"
    )
    assert done.json["models"][0]["cmip"] is None
    assert "no grade has 20 items" in done.json["models"][0]["sentence"]
    assert done.json["models"][0]["ndcg"] is not None

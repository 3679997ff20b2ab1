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
    assert naive["cmip"]["excess"]["low"] > 0.1 > pbm["cmip"]["excess"]["low"]
    assert naive["cmip"]["excess"]["null_mean"] < 0.02
    assert "follows the order of the logging policy" in naive["sentence"]


def test_the_fields(report: dict[str, Any]) -> None:
    fields = {"name", "model", "perplexity", "perplexity_at", "ndcg", "cmip", "ood_perplexity", "verdict", "sentence"}
    for model in report["models"]:
        assert fields <= set(model)
        assert {"estimate", "low", "high", "p_value", "estimator"} <= set(model["cmip"])
        assert model["cmip"]["estimator"] == "knn"
        excess = {"estimate", "low", "high", "p_value", "null_mean", "least", "draws"}
        assert excess == set(model["cmip"]["excess"])
        assert {"against", "value"} == set(model["cmip"]["power"])
        assert model["in_sample"] is True
        assert model["ndcg_low"] < model["ndcg"] < model["ndcg_high"]
        assert model["conditional_perplexity"] == model["perplexity"]
        assert model["log_likelihood"]["low"] < model["log_likelihood"]["mean"] < model["log_likelihood"]["high"] < 0
    assert report["positions"] == list(range(1, 11))
    assert report["selection"]["tied"] == []
    assert "paired differences by query" in report["selection"]["rule"]


def test_the_references_are_the_click_rate_and_the_policy(world: Path, report: dict[str, Any]) -> None:
    rows = pd.read_parquet(world / "world.parquet")
    rate = rows.groupby("position").click.agg(lambda c: (c.sum() + 0.5) / (len(c) + 1))
    p = rows.position.map(rate)
    bits = pd.Series(-np.log2(np.where(rows.click == 1, p, 1 - p))).groupby(rows.position).mean()
    assert report["reference"]["perplexity_by_rank"] == pytest.approx(np.exp2(bits).mean(), rel=1e-12)
    assert 0.95 < report["reference"]["policy_ndcg"] < 1
    assert 0 < report["reference"]["policy_err"] < report["reference"]["policy_mrr"] <= 1


def test_cmip_is_that_of_the_library_on_the_rows_joined_by_hand(world: Path, report: dict[str, Any]) -> None:
    ranks = pd.read_parquet(world / "world.parquet").groupby(KEY).position.mean().reset_index()
    rows = pd.read_parquet(world / "world.truth.parquet")[[*KEY, "grade"]]
    rows = rows.merge(pd.read_parquet(world / "naive" / "relevance.parquet"), on=KEY).merge(ranks, on=KEY)
    found = elute.cmip(rows.relevance, -rows.position, rows.grade, queries=rows.query_id)
    assert report["models"][1]["cmip"]["estimate"] == pytest.approx(found.estimate, abs=1e-9)
    assert report["models"][1]["cmip"]["p_value"] == found.p_value
    assert found.n + 12 == len(rows)
    assert found.notes == ("grades with fewer than 20 documents left out: 4 (12 documents)",)


def test_items_without_a_score_are_left_out_of_cmip_only(world: Path, tmp_path: Path, report: dict[str, Any]) -> None:
    scores = pd.read_parquet(world / "world.parquet").groupby(KEY).score.mean().reset_index().iloc[::2]
    scores.to_parquet(tmp_path / "scores.parquet")
    rows = pd.read_parquet(world / "world.truth.parquet")[[*KEY, "grade"]]
    rows = rows.merge(pd.read_parquet(world / "naive" / "relevance.parquet"), on=KEY).merge(scores, on=KEY)
    found = elute.cmip(rows.relevance, rows.score, rows.grade, queries=rows.query_id)
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
    assert model["cmip"]["excess"]["p_value"] > 0.05
    assert model["verdict"] != "fail", model["sentence"]
    assert "in-sample" in model["notes"][0]


def test_what_is_missing_is_null_and_named(world: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.parquet"
    pq.write_table(pq.read_table(world / "later.parquet").drop_columns("score"), bare)
    unlabelled = call_elute("audit", "--fit", world / "pbm", "--log", bare, "--json").json["models"][0]
    assert (unlabelled["ndcg"], unlabelled["cmip"], unlabelled["ood_perplexity"]) == (None, None, None)
    assert (unlabelled["verdict"], unlabelled["in_sample"]) == ("unknown", False)
    assert "no labels (`labels=`)" in unlabelled["sentence"]
    assert not any("fitted to" in note for note in unlabelled["notes"])
    labels = ("--labels", world / "world.truth.parquet")
    unscored = call_elute("audit", "--fit", world / "pbm", "--log", bare, *labels, "--json").json["models"][0]
    assert unscored["ndcg"] > 0.9
    assert unscored["cmip"]["excess"]["draws"] == 79  # positions will do; the fit's own log is found and redrawn
    assert "no labels (--labels)" in " ".join(call_elute("audit", "--fit", world / "pbm", "--log", bare).out.split())


def test_ranks_and_scores_of_the_policy_mean_the_same(world: Path, tmp_path: Path) -> None:
    """A policy's ranks rise with the log's positions; they must not turn its nDCG upside down."""
    scores = pd.read_parquet(world / "world.parquet").groupby(KEY).score.mean().reset_index()
    found = []
    for name, sign in (("scores", 1), ("ranks", -1)):
        scores.assign(score=sign * scores.score).to_parquet(tmp_path / f"{name}.parquet")
        done = call_elute(
            "audit", world / "naive", "--log", world / "later.parquet", "--labels", world / "world.truth.parquet",
            "--policy-scores", tmp_path / f"{name}.parquet", "--json",
        )  # fmt: skip
        found.append(done.json)
    for field in ("policy_ndcg", "policy_err", "policy_mrr"):
        assert found[0]["reference"][field] == found[1]["reference"][field]
    assert found[0]["reference"]["policy_ndcg"] > 0.95
    assert found[0]["models"][0]["cmip"]["estimate"] == found[1]["models"][0]["cmip"]["estimate"]
    assert any("so they are ranks" in note for note in found[1]["models"][0]["notes"])
    assert not any("so they are ranks" in note for note in found[0]["models"][0]["notes"])


def test_labels_may_be_the_logs_own_column_and_below_zero(world: Path, tmp_path: Path) -> None:
    truth = pd.read_parquet(world / "world.truth.parquet")
    truth = truth[truth.kind == "item"][[*KEY, "grade"]]
    rows = pd.read_parquet(world / "later.parquet").merge(truth, on=KEY)
    rows.rename(columns={"grade": "judged"}).to_parquet(tmp_path / "log.parquet")
    junk = truth.assign(grade=np.where(truth.grade == 0, -2, truth.grade))
    junk.to_parquet(tmp_path / "junk.parquet")
    given = {
        "plain": ("--labels", world / "world.truth.parquet"),
        "log": ("--labels", tmp_path / "log.parquet", "--grade", "judged"),
        "junk": ("--labels", tmp_path / "junk.parquet", "--negative-grades", "zero"),
    }
    fit = world / "naive"
    found = {
        name: call_elute("audit", fit, "--log", tmp_path / "log.parquet", *labels, "--json").json
        for name, labels in given.items()
    }
    plain, log, with_junk = (found[name]["models"][0] for name in given)
    assert with_junk["ndcg"] == plain["ndcg"]
    assert any("grades below 0 count as 0" in note for note in with_junk["notes"])
    shown = rows[KEY].drop_duplicates()
    assert 300 < found["log"]["judged_items"] <= len(shown) <= found["plain"]["judged_items"]
    assert log["ndcg"] == pytest.approx(plain["ndcg"], abs=0.02)


def test_session_models_are_audited_given_the_clicks_above(world: Path, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    log = world / "world.parquet"
    for model in ("dctr", "ubm"):
        assert call_elute("fit", log, "--model", model, "--session", "session_id", "--out", tmp_path / model).code == 0
    done = call_elute(
        "audit", tmp_path / "dctr", tmp_path / "ubm", "--log", log, "--session", "session_id",
        "--labels", world / "world.truth.parquet", "--json",
    )  # fmt: skip
    dctr, ubm = done.json["models"]
    assert (dctr["verdict"], dctr["in_sample"]) == ("fail", True), dctr["sentence"]
    assert ubm["verdict"] != "fail", ubm["sentence"]
    assert dctr["conditional_perplexity"] == pytest.approx(dctr["perplexity"])
    assert ubm["conditional_perplexity"] != ubm["perplexity"]


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
    junk = _table(tmp_path / "junk.parquet", query_id=["1"], doc_id=["d1-1"], grade=[-2])
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
        ((*pbm, *log, "--labels", twice), "1 items have more than one grade, for instance 1·d1-1"),
        ((*pbm, *log, "--labels", junk), "1 grades are below 0, for instance -2"),
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

"""`elute value` as a user runs it: JSON, files, the page, and what users get wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

import elute
from conftest import call_elute
from elute.cli.verbs.value import ESTIMATORS
from elute.simulation import toy
from elute.valuing.worth.estimators import OF_ITEMS

FIELDS = {"name", "value", "low", "high", "difference", "difference_low", "difference_high", "verdict"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, its fit, a ranking by the truth and the order that was shown."""
    folder = tmp_path_factory.mktemp("value")
    log = toy.simulate(5_000, 60, False, 7)
    pq.write_table(log, folder / "log.parquet")
    elute.fit(folder / "log.parquet").save(folder / "fit")
    shown = set(zip(log["query_id"].to_pylist(), log["doc_id"].to_pylist(), strict=True))
    rows = [row for row in toy.draw_truth(60, 7).to_pylist() if (row["query_id"], row["doc_id"]) in shown]
    for name, by in (("best", "relevance"), ("same", "score")):
        table = {"query_id": [row["query_id"] for row in rows], "doc_id": [row["doc_id"] for row in rows]}
        pq.write_table(pa.table({**table, "score": [row[by] for row in rows]}), folder / f"{name}.parquet")
    return folder


def run(world: Path, *words: object) -> Any:
    return call_elute("value", world / "log.parquet", "--fit", world / "fit", *words)


def test_the_contract(world: Path) -> None:
    found = run(world, "--ranking", world / "best.parquet", "--ranking", world / "same.parquet", "--json").json
    logged, best, same = found["rankings"]
    assert all(row.keys() >= FIELDS for row in found["rankings"])
    assert (logged["name"], logged["difference"]) == ("logged", 0.0)
    assert (best["name"], best["verdict"]) == ("best", "better")
    assert (same["name"], same["verdict"]) == ("same", "cannot tell")
    assert found["valued_share"] == 1.0
    clicks = pq.read_table(world / "log.parquet")["click"].to_numpy()
    assert logged["value"] == pytest.approx(clicks.sum() / 5_000, rel=1e-5)
    assert [one["estimator"] for one in best["estimators"]] == list(OF_ITEMS) == list(ESTIMATORS)
    assert found["between"][0]["verdict"] == "worse"  # the order shown, over the best
    assert best["by_query"]["winners"] > 20 > best["by_query"]["losers"]


def test_the_folder_and_what_is_read_from_it(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "value"
    printed = run(world, "--ranking", world / "best.parquet", "--switch", "--out", out)
    assert printed.code == 0
    assert "best is better than what was shown" in printed.out
    assert "an A/B test would take" in printed.out
    loaded = elute.Value.load(out)
    fields = json.loads((out / "value.json").read_text())
    assert loaded.to_dict() == fields
    assert loaded.by_query.num_rows == 60
    assert "better" in loaded.sentence
    assert "<svg" in loaded._repr_html_()
    page = tmp_path / "report.html"
    again = call_elute("report", world / "log.parquet", "--fit", world / "fit", "--value", out, "--out", page, "--json")
    assert "value" in again.json["sections"]
    text = page.read_text()
    assert "What would another ranking earn?" in text
    assert "elute value" in text


def test_rank_and_score_mean_the_same(world: Path, tmp_path: Path) -> None:
    table = pq.read_table(world / "best.parquet")
    ranks = pa.table({"query_id": table["query_id"], "doc_id": table["doc_id"], "rank": -table["score"].to_numpy()})
    write_csv(ranks, tmp_path / "best.csv")
    by_rank, by_score = (
        run(world, "--ranking", p, "--json").json for p in (tmp_path / "best.csv", world / "best.parquet")
    )
    assert by_rank["rankings"][1]["value"] == by_score["rankings"][1]["value"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.filter(pa.array(np.array(t["query_id"].to_pylist()) != "q000")),
            "does not rank 1 of the log's 60 queries",
        ),
        (lambda t: pa.concat_tables([t, t.slice(0, 3)]), "3 rows repeat an item"),
        (lambda t: t.set_column(2, "score", pa.array([float("nan"), *t["score"].to_pylist()[1:]])), "no finite score"),
        (lambda t: t.set_column(2, "score", pa.array(["x"] * t.num_rows)), "not numbers"),
        (
            lambda t: t.set_column(1, "doc_id", pa.array(["?"] + [f"u{n}" for n in range(1, t.num_rows)])),
            "was ever shown",
        ),
        (lambda t: t.set_column(0, "query_id", pa.array(["u"] * t.num_rows)), "has no query of the log"),
        (lambda t: t.set_column(1, "doc_id", pa.array([None, *t["doc_id"].to_pylist()[1:]])), "is null in 1 rows"),
        (lambda t: t.drop_columns("score"), "no column 'score' or 'rank'"),
        (lambda t: t.drop_columns("doc_id"), "has no column 'doc_id'"),
        (lambda t: t.slice(0, 0), "has no rows"),
    ],
)
def test_bad_rankings_are_one_line_each(world: Path, tmp_path: Path, change: Any, message: str) -> None:
    pq.write_table(change(pq.read_table(world / "best.parquet")), tmp_path / "bad.parquet")
    refused = run(world, "--ranking", tmp_path / "bad.parquet", "--out", tmp_path / "out")
    assert refused.code == 1
    assert message in refused.err.splitlines()[-1]
    assert "bad.parquet" in refused.err.splitlines()[-1]
    assert "Traceback" not in refused.err
    assert not (tmp_path / "out").exists()


def test_documents_never_shown_are_counted_and_bounded(world: Path, tmp_path: Path) -> None:
    table = pq.read_table(world / "best.parquet")
    new = pa.table({"query_id": ["q000", "q001"], "doc_id": ["unseen", "unseen"], "score": [9.0, 9.0]})
    pq.write_table(pa.concat_tables([table, new]), tmp_path / "new.parquet")
    found = run(world, "--ranking", tmp_path / "new.parquet", "--json").json
    row = found["rankings"][1]
    assert row["unvalued"]["never_shown"]["queries"] == 2
    assert found["queries_valued"] == 58
    assert row["difference_worst"] < row["difference_low"] * found["valued_share"]


def test_queries_that_keep_what_was_shown(world: Path, tmp_path: Path) -> None:
    """Worth what they were: the difference is that of the others, over all pages."""
    table = pq.read_table(world / "best.parquet")
    some = table.filter(pa.array([query < "q030" for query in table["query_id"].to_pylist()]))
    pq.write_table(some, tmp_path / "some.parquet")
    found = run(world, "--ranking", tmp_path / "some.parquet", "--missing", "logged", "--json").json
    for name in ("snips", "model"):
        by = {one["estimator"]: one for one in found["rankings"][1]["estimators"]}
        assert by[name]["difference"] > 0
    assert "keep what was shown" in " ".join(found["notes"])
    queries = elute.value(world / "log.parquet", world / "fit", some, missing="logged").by_query
    kept = np.array([query >= "q030" for query in queries["query_id"].to_pylist()])
    assert np.abs(queries["difference: ranking 1"].to_numpy()[kept]).max() == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --ranking or --policy"),
        (("--ranking", "nowhere.parquet"), "nowhere.parquet"),
        (("--policy", "weak"), "give --data"),
        (("--ranking", "BEST", "--cluster", "nothing"), "no column 'nothing'"),
        (("--ranking", "BEST", "--under", "FIT"), "no session click model"),
        (("--ranking", "BEST", "--item", "doc_id"), "leave out --item"),
    ],
)
def test_what_does_not_go_together(world: Path, words: tuple[str, ...], message: str) -> None:
    names = {"BEST": world / "best.parquet", "FIT": world / "fit"}
    refused = run(world, *(names.get(word, word) for word in words))
    assert refused.code == 1, refused.out
    assert message in refused.err, refused.err


def test_a_baseline_and_a_log_without_positions_are_refused(world: Path, tmp_path: Path) -> None:
    elute.fit(world / "log.parquet", "naive").save(tmp_path / "naive")
    words = "value", world / "log.parquet", "--fit", tmp_path / "naive", "--ranking", world / "best.parquet"
    assert "debiases nothing" in call_elute(*words).err
    table = pq.read_table(world / "log.parquet").rename_columns(["session_id", "query_id", "doc_id", "column", "click"])
    fit = elute.fit(table, bias="column")
    with pytest.raises(elute.EluteError, match="none is named as one"):
        elute.value(table, fit, world / "best.parquet", bias="column")


def test_a_fit_that_the_log_contradicts_is_said_to_be_one(world: Path) -> None:
    fit = elute.Fit.load(world / "fit")
    fit.summary["assumptions"] = {"run": True, "rejected": ["affine"], "reason": None}
    found = elute.value(world / "log.parquet", fit, world / "best.parquet").to_dict()
    assert any("contradicts" in note and "affine" in note for note in found["notes"])


def test_value_under_session_models(world: Path) -> None:
    """By a model that knows nothing but documents, a ranking earns its documents' click rates."""
    log = world / "log.parquet"
    under = elute.fit(log, "dctr", session="session_id")
    found = elute.value(log, world / "fit", world / "best.parquet", under=under, session="session_id").to_dict()
    table = under.relevance.to_pydict()
    rate = dict(zip(zip(table["query_id"], table["doc_id"], strict=True), table["relevance"], strict=True))
    ranked: dict[str, list[str]] = {}
    for row in sorted(pq.read_table(world / "best.parquet").to_pylist(), key=lambda row: -row["score"]):
        ranked.setdefault(row["query_id"], []).append(row["doc_id"])
    rows = pq.read_table(log).to_pylist()
    expected = sum(rate[row["query_id"], ranked[row["query_id"]][row["position"] - 1]] for row in rows) / 5_000
    one = found["under"][0]
    assert one["rankings"][0]["value"] == pytest.approx(expected, rel=1e-3)
    shown = sum(rate[row["query_id"], row["doc_id"]] for row in rows) / 5_000
    assert one["logged"] == pytest.approx(shown, rel=1e-3)

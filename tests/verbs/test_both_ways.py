"""Every verb, from Python and from the command line: the whole JSON is the same, but for seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow.csv import write_csv

import elute
from conftest import call_elute
from elute.results.base import Result
from elute.simulation import toy

LETOR = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"
UBI = tuple(Path(__file__).parents[2] / "docs" / "data" / f"ubi_{kind}.ndjson" for kind in ("queries", "events"))
_TIMED = ("seconds",)


def without_times(fields: Any) -> Any:
    """Fields that must be equal: all but seconds, at any depth."""
    if isinstance(fields, dict):
        return {name: without_times(value) for name, value in fields.items() if name not in _TIMED}
    if isinstance(fields, list | tuple):
        return [without_times(value) for value in fields]
    if isinstance(fields, float) and math.isnan(fields):
        return "nan"
    return fields


def compare(result: Result, *words: object, code: int = 0) -> None:
    """A result against what the same verb prints; through text, as JSON has no tuples and no integer keys."""
    outcome = call_elute(*words, "--json")
    assert outcome.code == code, outcome.err
    assert without_times(json.loads(result.to_json())) == without_times(outcome.json)


@pytest.fixture(scope="module")
def sound(demo_logs: Path) -> Path:
    return demo_logs / "sound.parquet"


@pytest.fixture(scope="module")
def broken(demo_logs: Path) -> Path:
    return demo_logs / "broken.parquet"


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of few pages: most items have no click or one, so that the prior matters."""
    out = tmp_path_factory.mktemp("sparse") / "log.parquet"
    elute.simulate(LETOR, out, sessions=400, seed=5)
    return out


@pytest.fixture(scope="module")
def plan(broken: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "merge.json"
    elute.merge(broken).save(path)
    return path


@pytest.fixture(scope="module")
def fitted(broken: Path, plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fits") / "pbm"
    elute.fit(broken, plan=plan).save(folder)
    return folder


def test_check(sound: Path, broken: Path, plan: Path) -> None:
    compare(elute.check(sound, explore=True, curve=True, seed=2), "check", sound, "--explore", "--curve", "--seed", 2)
    compare(elute.check(broken), "check", broken, code=3)
    compare(elute.check(broken, plan=plan), "check", broken, "--plan", plan)
    compare(elute.check(sound, precision=True), "check", sound, "--precision")
    compare(elute.check(sound, model="affine"), "check", sound, "--model", "affine")
    by_page = ("--session", "session_id")
    compare(elute.check(sound, model="ubm", session="session_id"), "check", sound, "--model", "ubm", *by_page)
    compare(elute.check(sound, item="doc_id"), "check", sound, "--item", "doc_id")


def test_check_with_bounds(broken: Path, fitted: Path) -> None:
    compare(elute.check(broken, bounds=True), "check", broken, "--bounds", code=3)
    said = "position=5 <= position=4"
    compare(
        elute.check(broken, monotone=["position"], at_most=[said], propensities=fitted),
        *("check", broken, "--monotone", "position", "--at-most", said, "--propensities", fitted),
        code=3,
    )


def test_score_plans(sparse: Path, tmp_path: Path) -> None:
    plan = elute.link(sparse, "score", score_scale="query", date="today")
    compare(
        plan, "repair", sparse, "--method", "score", "--score", "score", "--score-scale", "query", "--date", "today"
    )
    judged = elute.link(sparse, "score", labels=sparse.with_suffix(".truth.parquet"), date="today")
    words = ("--score", "score", "--labels", sparse.with_suffix(".truth.parquet"), "--date", "today")
    compare(judged, "repair", sparse, "--method", "score", *words)
    plan.save(tmp_path / "score.json")
    compare(elute.check(sparse, plan=plan), "check", sparse, "--plan", tmp_path / "score.json")
    compare(elute.fit(sparse, plan=plan, seed=3), "fit", sparse, "--plan", tmp_path / "score.json", "--seed", 3)


def test_repair(broken: Path, fitted: Path) -> None:
    compare(elute.merge(broken), "repair", broken, "--method", "merge")
    compare(elute.merge(broken, prefer="distortion"), "repair", broken, "--method", "merge", "--prefer", "distortion")
    compare(
        elute.merge(broken, bias_features="position", weights={"position": 2.0}, propensity=fitted, date="today"),
        *("repair", broken, "--method", "merge", "--bias-features", "position", "--weights", "position=2"),
        *("--propensity", fitted, "--date", "today"),
    )
    compare(
        elute.swap(broken, max_position_change=2, budget=5000, objective="mean", target_se=0.2),
        *("repair", broken, "--method", "swap", "--max-position-change", 2, "--budget", 5000),
        *("--objective", "mean", "--target-se", 0.2),
    )
    compare(
        elute.swap(broken, first=elute.merge(broken, weights={"position": 0.5})),
        *("repair", broken, "--method", "swap", "--weights", "position=0.5"),
    )
    files = fitted / "relevance.parquet", fitted / "propensities.parquet"
    by_file = elute.swap(broken, *files, only_positions=[4, 5], min_impressions=3)
    compare(
        by_file,
        *("repair", broken, "--method", "swap", "--relevance", files[0], "--propensity", files[1]),
        *("--only-positions", "4,5", "--min-impressions", 3),
    )
    for fit in (fitted, elute.Fit.load(fitted)):
        by_fit = elute.swap(broken, fit, fit, only_positions=[4, 5], min_impressions=3)
        assert replace(by_fit, provenance=by_file.provenance) == by_file


def test_a_plan_that_is_continued(broken: Path, sound: Path, tmp_path: Path) -> None:
    plan = tmp_path / "swap.json"
    elute.swap(broken).save(plan)
    compare(elute.follow(plan, sound), "repair", "--continue", plan, "--log", sound)
    compare(
        elute.follow(plan, sound, broken, session="session_id", date="today"),
        *("repair", broken, "--continue", plan, "--log", sound, "--session", "session_id", "--date", "today"),
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"model": "score-adjusted", "score": "score", "score_scale": "query", "seed": 2},
            ("--model", "score-adjusted", "--score", "score", "--score-scale", "query", "--seed", 2),
        ),
        ({}, ()),
        ({"relevance_prior": "none", "tolerance": 1e-6}, ("--relevance-prior", "none", "--tolerance", "1e-6")),
        ({"prior": "smooth", "seed": 3}, ("--prior", "smooth", "--seed", 3)),
        ({"model": "dla", "seed": 1}, ("--model", "dla", "--seed", 1)),
        ({"model": "naive"}, ("--model", "naive")),
        ({"bootstrap": 20, "seed": 4}, ("--bootstrap", 20, "--seed", 4)),
    ],
)
def test_fit(sparse: Path, options: dict[str, Any], words: tuple[object, ...]) -> None:
    compare(elute.fit(sparse, max_position=9, **options), "fit", sparse, "--max-position", 9, *words)


def test_fit_with_propensities_and_plans(broken: Path, plan: Path, fitted: Path) -> None:
    compare(elute.fit(broken, plan=plan), "fit", broken, "--plan", plan)
    compare(elute.fit(broken, allow_unidentified=True), "fit", broken, "--allow-unidentified")
    compare(
        elute.fit(broken, "ipw", propensities=fitted, clip=0.05),
        *("fit", broken, "--model", "ipw", "--propensities", fitted, "--clip", 0.05),
    )


def test_fit_from_an_earlier_one(sound: Path, tmp_path: Path) -> None:
    elute.fit(sound, where="position < 8").save(tmp_path / "before")
    compare(elute.fit(sound, warm=tmp_path / "before"), "fit", sound, "--warm", tmp_path / "before")


def test_fit_with_bounds(broken: Path, fitted: Path) -> None:
    compare(elute.fit(broken, monotone="position"), "fit", broken, "--monotone", "position")
    compare(elute.fit(broken, bounds=True, propensities=fitted), "fit", broken, "--bounds", "--propensities", fitted)


def test_fit_of_a_session_model(sparse: Path) -> None:
    compare(elute.fit(sparse, "ubm", session="session_id"), "fit", sparse, "--model", "ubm", "--session", "session_id")
    compare(
        elute.fit(sparse, "dctr", session="session_id", holdout=0.2, by="query"),
        *("fit", sparse, "--model", "dctr", "--session", "session_id", "--holdout", 0.2, "--by", "query"),
    )


def test_the_files_of_a_fit_are_the_same(sparse: Path, tmp_path: Path) -> None:
    elute.fit(sparse, max_position=9).save(tmp_path / "python")
    assert call_elute("fit", sparse, "--max-position", 9, "--out", tmp_path / "shell").code == 0
    for name in ("propensities.parquet", "relevance.parquet"):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "shell" / name).read_bytes()
    summaries = [json.loads((tmp_path / place / "fit.json").read_text()) for place in ("python", "shell")]
    assert without_times(summaries[0]) == without_times(summaries[1])


def test_audit(broken: Path, fitted: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    write_csv(toy.draw_truth(120, 7), truth)
    compare(
        elute.audit(fitted, broken, labels=truth, policy_scores=truth, seed=1),
        *("audit", "--fit", fitted, "--log", broken, "--labels", truth, "--policy-scores", truth, "--seed", 1),
    )
    compare(elute.audit(None, broken, assumptions=True), "audit", "--assumptions", "--log", broken)
    compare(
        elute.audit(None, broken, assumptions=True, cluster="session_id"),
        *("audit", "--assumptions", "--log", broken, "--cluster", "session_id"),
    )


def test_judge(fitted: Path, tmp_path: Path) -> None:
    for form in ("quepid", "opensearch", "ranklib", "trec"):
        out = tmp_path / form
        compare(
            elute.judge(fitted, form, out, levels=3), "judge", fitted, "--format", form, "--levels", 3, "--out", out
        )
    truth = tmp_path / "truth.csv"
    write_csv(toy.draw_truth(120, 7), truth)
    compare(
        elute.judge(fitted, out=out, all_items=True, labels=truth),
        *("judge", fitted, "--format", "quepid", "--all", "--labels", truth, "--out", out),
    )


def test_report(broken: Path, plan: Path, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    compare(
        elute.report(broken, out, plan=plan, fits=fitted),
        *("report", broken, "--plan", plan, "--fit", fitted, "--out", out),
    )
    page = out.read_bytes()
    elute.report(broken, out, plan=plan, fits=[fitted])
    assert out.read_bytes() == page


def test_sql_and_its_cells(sound: Path, tmp_path: Path) -> None:
    pytest.importorskip("sqlglot")
    found = elute.sql("log", "duckdb", session="session_id", max_position=4)
    compare(found, "sql", "log", "--dialect", "duckdb", "--session", "session_id", "--max-position", 4)
    with closing(duckdb.connect()) as connection:
        connection.execute(f"CREATE VIEW log AS SELECT * FROM '{sound}'")
        connection.sql(found.statement).write_parquet(str(tmp_path / "cells.parquet"))
    counted = elute.count(tmp_path / "cells.parquet", tmp_path / "counts", from_cells=True)
    compare(counted, "count", "--from-cells", tmp_path / "cells.parquet", "--out", tmp_path / "counts")


def test_value(sound: Path, broken: Path, plan: Path, fitted: Path, tmp_path: Path) -> None:
    truth = toy.draw_truth(120, 7)
    new = tmp_path / "new.csv"
    write_csv(truth.select(["query_id", "doc_id"]).append_column("score", truth["relevance"]), new)
    compare(
        elute.value(broken, fitted, new, estimator="dr", clip=0.2, switch=True, at=5, cluster="query_id"),
        *("value", broken, "--fit", fitted, "--ranking", new, "--estimator", "dr", "--clip", 0.2),
        *("--switch", "--at", 5),
        *("--cluster", "query_id"),
    )
    elute.fit(sound).save(tmp_path / "fit")
    compare(
        elute.value(sound, tmp_path / "fit", [new, new], session="session_id", bootstrap=3, seed=2, scores=new),
        *("value", sound, "--fit", tmp_path / "fit", "--ranking", new, "--ranking", new, "--session", "session_id"),
        *("--bootstrap", 3, "--seed", 2, "--scores", new),
    )


def test_simulate(tmp_path: Path) -> None:
    out = tmp_path / "log.parquet"
    made = elute.simulate(LETOR, out, user="dbn", user_settings={"continuation": 0.8}, sessions=200, seed=9)
    log = out.read_bytes()
    words = ("--user", "dbn", "--user-setting", "continuation=0.8", "--sessions", 200, "--seed", 9, "--out", out)
    compare(made, "simulate", "--data", LETOR, *words)
    assert out.read_bytes() == log


def test_convert(tmp_path: Path) -> None:
    out = tmp_path / "ubi.parquet"
    compare(elute.convert(UBI, "ubi", out), "convert", *UBI, "--from", "ubi", "--out", out)


def test_count(sound: Path, tmp_path: Path) -> None:
    out = tmp_path / "counts"
    compare(elute.count(sound, out), "count", sound, "--out", out)
    daily, words = tmp_path / "daily", ("--append", "--key", "day=2026-11-14", "--drop", "day < 2026-11-01")
    asked: dict[str, Any] = {"append": True, "key": "day=2026-11-14", "drop": "day < 2026-11-01"}
    elute.count(sound, daily, **asked)
    compare(elute.count(sound, daily, **asked), "count", sound, *words, "--out", daily)
    compare(elute.check(daily, last=1, drop="day = 1"), "check", daily, "--last", 1, "--drop", "day = 1")


def test_settings_of_learners(sparse: Path, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    out = tmp_path / "ranker"
    ranker = elute.train(
        sparse, LETOR, out, learner="observation-dropout", learner_settings={"drop": 0.25}, model="linear", steps=2
    )
    words = ("--learner", "observation-dropout", "--learner-setting", "drop=0.25", "--model", "linear", "--steps", 2)
    compare(ranker, "train", sparse, "--features", LETOR, *words, "--out", out)


def test_train_rank_and_export(sparse: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    out, scores = tmp_path / "ranker", tmp_path / "scores.parquet"
    asked: dict[str, Any] = {"learner": "naive", "model": "lightgbm", "steps": 5}
    ranker = elute.train(sparse, LETOR, out, **asked, test=LETOR, session="session_id")
    words = ("--features", LETOR, "--learner", "naive", "--model", "lightgbm", "--steps", 5, "--test", LETOR)
    compare(ranker, "train", sparse, *words, "--session", "session_id", "--out", out)
    held: dict[str, Any] = {"holdout": 0.3, "by": "query", "patience": 2}
    ranker = elute.train(sparse, LETOR, out, **asked, **held)
    compare(ranker, "train", sparse, *words[:-2], "--holdout", 0.3, "--by", "query", "--patience", 2, "--out", out)
    known: dict[str, Any] = {"model": "lightgbm", "steps": 3, "rate": [0.1, 0.3], "clip": 0.2, "max_position": 5}
    searched = ("--features", LETOR, "--model", "lightgbm", "--steps", 3, "--rate", "0.1,0.3", "--clip", 0.2)
    ranker = elute.train(sparse, LETOR, out, **known, validation=LETOR)
    compare(ranker, "train", sparse, *searched, "--max-position", 5, "--validation", LETOR, "--out", out)
    ranker = elute.train(sparse, LETOR, out, **known, validation=LETOR, naive=True)
    compare(ranker, "train", sparse, *searched, "--max-position", 5, "--validation", LETOR, "--naive", "--out", out)
    compare(elute.rank(ranker, LETOR, scores), "rank", out, "--features", LETOR, "--out", scores)
    pytest.importorskip("onnx")
    served = tmp_path / "ranker.onnx"
    compare(elute.export(ranker, served), "export", out, "--out", served)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: elute.fit(log), ("fit",)),
        (lambda log: elute.fit(log, "dla"), ("fit", "--model", "dla")),
        (lambda log: elute.PBM().fit(log), ("fit",)),
        (lambda log: elute.TwoTower().fit(log), ("fit", "--model", "two-tower")),
    ],
)
def test_what_the_command_refuses_python_refuses(
    broken: Path, call: Callable[[Path], object], words: tuple[str, ...]
) -> None:
    with pytest.raises(elute.NotRecoverable, match=r"2 components.*elute\.merge.*allow_unidentified") as refused:
        call(broken)
    assert refused.value.components == 2
    outcome = call_elute(words[0], broken, *words[1:])
    assert outcome.code == 3
    assert "elute repair" in outcome.err


@pytest.mark.parametrize(("call", "model"), [(elute.Naive().fit, "naive"), (elute.CTR().fit, "ctr")])
def test_what_the_command_takes_as_a_baseline_python_takes(
    broken: Path, call: Callable[[Path], object], model: str
) -> None:
    call(broken)
    compare(elute.fit(broken, model), "fit", broken, "--model", model)


@pytest.mark.parametrize(
    ("options", "words", "message"),
    [
        ({"model": "dla", "prior": "smooth"}, ("--model", "dla", "--prior", "smooth"), "model 'dla' has no"),
        ({"model": "ipw"}, ("--model", "ipw"), "model 'ipw' needs"),
        ({"cluster": "query_id"}, ("--cluster", "query_id"), "says what"),
        ({"model": "naive", "bootstrap": 5}, ("--model", "naive", "--bootstrap", 5), "model 'naive' has no"),
        ({"model": "ubm"}, ("--model", "ubm"), "session click models need the pages"),
    ],
)
def test_options_that_do_not_go_together(
    sound: Path, options: dict[str, Any], words: tuple[object, ...], message: str
) -> None:
    with pytest.raises(elute.EluteError, match=message) as refused:
        elute.fit(sound, **options)
    outcome = call_elute("fit", sound, *words)
    assert outcome.code == 1
    assert message in outcome.err
    assert "--" not in str(refused.value)
    assert "=`" not in outcome.err

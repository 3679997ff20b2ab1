"""Score plans: what they say, what a check and a fit make of them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.cli.pages.fit import say_likelihood
from elute.errors import EluteError
from elute.repair.plan import ScorePlan, load

O = np.array([0.7, 0.5, 0.35, 0.2, 0.12, 0.08])  # noqa: E741


def draw_log(seed=0, queries=300, pages=60, *, link=True, noise=0.0) -> pa.Table:
    """Lists of six by a score; `link`: neighbours swap places within the upper and within the lower half."""
    rng = np.random.default_rng(seed)
    score = -np.sort(-rng.normal(size=(queries, 6)), axis=1)
    relevance = 0.1 + 0.8 / (1 + np.exp(-score - 0.5 * rng.normal(size=score.shape)))
    logged = score + noise * rng.normal(size=score.shape)
    tables = []
    for order in ([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3] if link else [0, 1, 2, 3, 4, 5]):
        query, place = np.indices((queries, 6)).reshape(2, -1)
        doc = np.array(order)[place]
        clicks = rng.binomial(pages, O[place] * relevance[query, doc])
        columns = {"query_id": query, "doc_id": 6 * query + doc, "position": place + 1, "score": logged[query, doc]}
        tables.append(pa.table({**columns, "shown": np.full(len(place), pages), "click": clicks}))
    return pa.concat_tables(tables)


def read(table: pa.Table) -> elute.ClickLog:
    return elute.read_log(table, impressions="shown")


def test_a_plan_scales_components_and_says_what_that_rests_on(tmp_path: Path) -> None:
    log = read(draw_log())
    plan = elute.link(log, "score")
    assert (plan.components_before, plan.components_after, len(plan.contents.links)) == (2, 1, 1)
    assumed = plan.assumption
    assert (assumed.verdict, assumed.components_placed, assumed.components_combined) == ("holds", 1, 0)
    assert assumed.impressions_share == pytest.approx(0.5)
    assert {row["ratios"] for row in plan.contents.components} == {"items"}
    link = plan.contents.links[0]
    truth = O[link["a"]["position"] - 1] / O[link["b"]["position"] - 1]
    assert abs(np.log(link["ratio"] / truth)) < 3.5 * link["log_se"] < 0.7
    plan.save(tmp_path / "plan.json")
    again = load(tmp_path / "plan.json")
    assert isinstance(again, ScorePlan) and again == plan
    assert "which the log bears out" in assumed.sentence and "the scale of 1 of 2 components" in assumed.sentence

    before, after = elute.check(log), elute.check(log, plan=tmp_path / "plan.json")
    assert (before.rung, after.recoverable) == ("apart", True)
    assert assumed.sentence in after.sentence
    assert after.to_dict()["assumption"] == assumed.to_dict()
    assert after.to_dict()["precision"]["largest_log_se"] == pytest.approx(
        max(row["log_se"] for row in plan.contents.propensities), rel=1e-5
    )

    assert (plan.card().tone == "good") == (after.to_dict()["precision"]["largest_log_se"] <= 0.1)

    found = elute.fit(log, plan=plan)
    assert (found.summary["components"], found.summary["rung"]) == (1, after.rung)
    assert found.summary["assumption"] == assumed.to_dict()
    assert found.propensities is not None
    off = np.log(found.propensities["propensity"].to_numpy() / (O / O[0]))
    assert (np.abs(off) <= 3.5 * found.propensities["log_se"].to_numpy() + 1e-9).all()
    found.save(tmp_path / "fit")
    assert elute.Fit.load(tmp_path / "fit").summary == found.summary
    assert "by_score" in found.relevance.column_names


def test_a_world_that_breaks_the_assumption_is_noticed() -> None:
    log = read(draw_log(noise=1.5))
    plan = elute.link(log, "score")
    assert plan.assumption.verdict == "contradicted" and "which the log contradicts" in plan.assumption.sentence
    check = elute.check(log, plan=plan, target_log_se=10.0)
    assert check.rung == "loose"
    assert plan.card().tone == "bad"
    within = elute.PBM().fit(log, allow_unidentified=True).propensity_[:3]
    found = elute.fit(log, plan=plan).propensities
    assert found is not None  # what items know is left as it is
    assert found["propensity"].to_numpy()[:3] == pytest.approx(within / within[0], rel=0.05)


def test_a_log_that_items_know_needs_no_score() -> None:
    table = draw_log(2, pages=2_000)
    mixed = table.set_column(2, "position", pa.array((table["position"].to_numpy() + 1) % 6 + 1))
    plan = elute.link(read(pa.concat_tables([table, mixed])), "score")
    assert plan.components_before == 1
    if not plan.assumption.components_combined:
        assert plan.card().word == "Nothing to repair"


def test_one_fixed_list_a_query_has_as_many_components_as_places(tmp_path: Path) -> None:
    plan = elute.link(read(draw_log(3, link=False)), "score")
    assert (plan.components_before, len(plan.contents.links)) == (6, 5)
    assert {row["ratios"] for row in plan.contents.components} == {None}
    ratios = {row["factor"]["position"]: row["propensity"] for row in plan.contents.propensities}
    assert [ratios[k] for k in range(1, 7)] == pytest.approx(O / O[0], rel=0.3)


def test_what_is_refused(tmp_path: Path) -> None:
    table = draw_log(4, queries=60)
    plan = elute.link(read(table), "score")
    with pytest.raises(EluteError, match="names factors that this log lacks"):
        elute.check(read(table.filter(pa.compute.less(table["position"], 6))), plan=plan)
    with pytest.raises(EluteError, match="has no `prior=`"):
        elute.fit(read(table), plan=plan, prior="smooth")
    with pytest.raises(EluteError, match="has no `model=`"):
        elute.fit(read(table), "em", plan=plan)
    with pytest.raises(EluteError, match="not the formula"):
        both = table.append_column("device", pa.array(np.arange(table.num_rows) % 2))
        elute.link(elute.read_log(both, impressions="shown", bias="position + device"), "score")
    more = table.set_column(2, "position", pa.array(table["position"].to_numpy() + (np.arange(720) % 12 == 5)))
    with pytest.raises(EluteError, match="has no propensity for position 7"):
        elute.check(read(more), plan=plan)
    pq.write_table(table, tmp_path / "log.parquet")
    answer = call_elute("repair", tmp_path / "log.parquet", "--impressions", "shown", "--method", "score")
    assert answer.code == 1 and "--method score needs --score" in answer.err


def test_a_damaged_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    elute.link(read(draw_log(5, queries=60)), "score").save(path)
    sound = json.loads(path.read_text())
    for place, value in (
        (("assumption", "verdict"), "perhaps"),
        (("links", 0, "ratio"), -1),
        (("propensities", 0, "factor"), {"place": 1}),
        (("components", 0, "factors"), 0),
    ):
        fields = json.loads(json.dumps(sound))
        at = fields
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = value
        path.write_text(json.dumps(fields))
        with pytest.raises(EluteError, match="not a plan that elute wrote"):
            load(path)


def test_a_plan_of_few_clicks_is_loose() -> None:
    """The log may bear the assumption out, and tell little by it."""
    plan = elute.link(read(draw_log(1, pages=2)), "score")
    errors = [row["log_se"] for row in plan.contents.propensities if row["log_se"] is not None]
    assert max(errors) > 0.1
    assert plan.card().tone != "good"


def test_labels_test_a_plan_as_they_test_a_fit(tmp_path: Path) -> None:
    """Labels that fall as the score says bear it out; those that fall further contradict it, in plan and fit."""
    table = draw_log()
    pq.write_table(table, tmp_path / "log.parquet")
    items = table.group_by(["query_id", "doc_id"]).aggregate([("score", "mean"), ("position", "min")])
    score, position = (items[name].to_numpy() for name in ("score_mean", "position_min"))
    right = 1 / (1 + np.exp(-score))
    for name, value in (("right", right), ("wrong", right * np.exp(-0.5 * position))):
        labels = items.select(["query_id", "doc_id"]).append_column("relevance", pa.array(value))
        pq.write_table(labels, tmp_path / f"{name}.parquet")
    log, word = read(table), {"right": "holds", "wrong": "contradicted"}
    for name, verdict in word.items():
        plan = elute.link(log, "score", labels=tmp_path / f"{name}.parquet")
        assert plan.assumption.verdict == verdict
        assert [one["with"] for one in plan.contents.score["comparisons"]] == ["lists", "items", "labels"]
        fit = elute.fit(log, plan=plan, labels=tmp_path / f"{name}.parquet")
        assert fit.summary["score"]["comparisons"] == plan.contents.score["comparisons"]
        assert fit.summary["assumption"]["verdict"] == verdict
    plan.save(tmp_path / "plan.json")
    assert load(tmp_path / "plan.json") == plan
    words = ("--method", "score", "--score", "score", "--labels", tmp_path / "wrong.parquet", "--impressions", "shown")
    done = call_elute("repair", tmp_path / "log.parquet", *words, "--json")
    assert done.json["score"] == plan.contents.score
    below = items.select(["query_id", "doc_id"]).append_column("relevance", pa.array(right - 1))
    with pytest.raises(EluteError, match="some labels are below 0"):
        elute.link(log, "score", labels=below)


def test_what_a_fit_under_a_score_plan_has_not_says_what_has() -> None:
    log = read(draw_log(queries=40))
    plan = elute.link(log, "score")
    says = "no `bootstrap=`.*without the plan, `model='score-adjusted'` has"
    with pytest.raises(EluteError, match=says):
        elute.fit(log, plan=plan, bootstrap=3)


def test_items_of_one_query_cannot_tell() -> None:
    """Errors are from how queries differ: of one there is none, whatever its clicks."""
    table = draw_log(link=False)
    mixed = draw_log(seed=3, queries=1, pages=5_000)
    lone = mixed.set_column(0, "query_id", pa.array(np.full(len(mixed), 1_000)))
    lone = lone.set_column(1, "doc_id", pa.array(mixed["doc_id"].to_numpy() + 100_000))
    found = elute.link(read(pa.concat_tables([table, lone])), "score").contents.score
    items = next(one for one in found["comparisons"] if one["with"] == "items")
    assert items == {"with": "items", "reason": "its clicks are of one query"}
    assert "items shown under several factors cannot tell (its clicks are of one query)" in found["sentence"]


def test_more_factors_than_can_be_combined(tmp_path: Path) -> None:
    table = draw_log(queries=420)
    layout = pa.array([f"l{query}" for query in table["query_id"].to_pylist()])
    pq.write_table(table.append_column("layout", layout), tmp_path / "log.parquet")
    words = ("--bias", "position,layout", "--impressions", "shown", "--method", "score", "--score", "score")
    done = call_elute("repair", tmp_path / "log.parquet", *words)
    assert (done.code, done.err.splitlines()[-1]) == (
        1,
        f"elute: {tmp_path / 'log.parquet'} has more than 2,000 factors, too many to combine links and a score; "
        "'elute fit' with --model score-adjusted and --score takes the score alone",
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-np.inf, "likelihood 0: the log has what it takes for impossible"),
        (-0.04, "log-likelihood 0.0"),
        (-12345.67, "log-likelihood -12,345.7"),
    ],
)
def test_a_likelihood_in_words(value: float, words: str) -> None:
    assert say_likelihood(value) == words

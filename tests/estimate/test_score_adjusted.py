"""Clicks adjusted for a score: against a plain Poisson regression, exact clicks, and worlds that break it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elute
from elute.errors import EluteError
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.scored.conditional import RIDGE, ClickShares, fit_shares
from elute.estimate.scored.pooled import fit_pooled
from elute.estimate.scored.rows import ScoredRows, read_rows
from elute.estimate.scored.spline import bin_scores
from elute.estimate.scored.verdict import test_score as judge_score
from elute.progress import silent
from reference.plain_poisson import find_clustered_covariance, fit_poisson

PROPENSITIES = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])


def draw_table(seed, queries=300, pages=20, *, shift=0.0, noise=0.0, lists=1, exact=False):
    """Lists of ten by a normal score, which is logged as it is, shifted by query or with noise; `lists` of a query
    are ranked with a little noise of their own. Relevance depends on the score, and on more that nobody sees."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(queries, 25))
    hidden = 0.0 if exact else rng.normal(size=score.shape)
    relevance = 0.05 + 0.9 / (1 + np.exp(1 - 1.5 * score - hidden))
    logged = score + noise * rng.normal(size=score.shape) + shift * rng.normal(size=(queries, 1))
    parts = []
    for _ in range(lists):
        order = np.argsort(-score - (0.3 if lists > 1 else 0.0) * rng.normal(size=score.shape), axis=1)[:, :10]
        query, k = np.indices(order.shape).reshape(2, -1)
        doc = order.ravel()
        p = PROPENSITIES[k] * relevance[query, doc]
        clicks = np.round(pages * p).astype(np.int64) if exact else rng.binomial(pages, p)
        columns = {"query_id": query, "doc_id": query * 25 + doc, "position": k + 1, "score": logged[query, doc]}
        parts.append(pa.table({**columns, "shown": np.full(len(k), pages), "click": clicks}))
    return pa.concat_tables(parts)


def read(table):
    return elute.read_log(table, impressions="shown")


def rows_of(table) -> ScoredRows:
    return read_rows(read(table), ("score",), "raw", silent)


def test_the_pooled_fit_is_a_poisson_regression_with_clustered_errors():
    rows = rows_of(draw_table(1, queries=40))
    bins = bin_scores(rows.score, rows.shown)
    found = fit_pooled(rows, bins, 10, seed=0)
    x = np.hstack([bins.basis[bins.bin], np.eye(10)[rows.factor]])
    penalty = np.zeros((x.shape[1],) * 2)
    width = bins.basis.shape[1]
    penalty[:width, :width] = found.stiffness * bins.penalty + RIDGE * np.eye(width)
    beta = fit_poisson(x, rows.shown, rows.clicked, penalty)
    assert found.log_o - found.log_o[0] == pytest.approx(beta[width:] - beta[width], abs=1e-5)
    covariance = find_clustered_covariance(x, rows.shown, rows.clicked, penalty, beta, rows.query)[width:, width:]
    variance = np.diag(covariance) + covariance[0, 0] - 2 * covariance[0]
    assert found.influence.errors(0) == pytest.approx(np.sqrt(np.maximum(variance, 0)), abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_conditioning_on_groups_is_an_effect_a_group(seed):
    rng = np.random.default_rng(seed)
    group, design = np.repeat(np.arange(5), 6), rng.normal(size=(30, 3))
    shown = rng.integers(1, 50, 30).astype(float)
    clicked = rng.integers(1, 30, 30).astype(float)
    penalty = np.diag([0.5, 0.0, 2.0])
    x = np.hstack([design, np.eye(5)[group]])
    held = np.zeros((8, 8))
    held[:3, :3] = penalty + RIDGE * np.eye(3)
    beta = fit_poisson(x, shown, clicked, held)
    found = fit_shares(ClickShares(group, design, shown, clicked), penalty)
    assert found.converged
    assert found.coefficients == pytest.approx(beta[:3], abs=1e-5)
    assert found.expected == pytest.approx(shown * np.exp(x @ beta), rel=1e-4)
    covariance = find_clustered_covariance(x, shown, clicked, held, beta, group)[:3, :3]
    moved = found.project(group, np.eye(3))
    assert moved.T @ moved * 5 / 4 == pytest.approx(covariance, rel=1e-3, abs=1e-9)


def test_exact_clicks_give_the_truth():
    fit = ScoreAdjusted(score="score").fit(read(draw_table(2, pages=10**6, exact=True)))
    assert fit.propensity_ == pytest.approx(PROPENSITIES / PROPENSITIES[0], rel=0.02)
    assert fit.converged_ and set(fit.component_) == {0}
    assert fit.score_test_.ratio == pytest.approx(PROPENSITIES[0] / PROPENSITIES[-1], rel=0.02)


def test_relevance_is_clicks_over_what_was_seen():
    table = draw_table(3, lists=2)
    fit = ScoreAdjusted(score="score").fit(read(table))
    row = fit.relevance_.to_pylist()[7]
    own = [one for one in table.to_pylist() if one["doc_id"] == row["doc_id"]]
    seen = sum(one["shown"] * fit.propensity_[one["position"] - 1] for one in own)
    assert row["relevance"] == pytest.approx(sum(one["click"] for one in own) / seen)
    assert fit.relevance_log_se_[7] > 0


@pytest.mark.parametrize("scale", ["query", "rank"])
def test_scores_are_rescaled_within_queries(scale):
    table = draw_table(4, queries=6, lists=2)
    rows = read_rows(read(table), ("score",), scale, silent)
    plain = {}
    for query in set(table["query_id"].to_pylist()):
        own = {(r["doc_id"], r["score"]) for r in table.to_pylist() if r["query_id"] == query}
        values = np.array([score for _, score in own])
        for _, score in own:
            ranked = (values < score).mean() + (values == score).mean() / 2
            plain[score] = (score - values.mean()) / values.std() if scale == "query" else ranked
    raw = rows_of(table)
    assert rows.score[:, 0] == pytest.approx([plain[score] for score in raw.score[:, 0]])
    assert rows.clicked.sum() == sum(table["click"].to_pylist())


def test_what_the_score_cannot_do_is_said():
    table = draw_table(5, queries=20)
    for model, words in (
        (ScoreAdjusted(score="scores"), "no column 'scores'"),
        (ScoreAdjusted(score="score", score_scale="rank"), "cannot be told from the bias columns"),
        (ScoreAdjusted(score="shown"), "one value only"),
    ):
        with pytest.raises(EluteError, match=words):
            model.fit(read(table))
    text = table.append_column("word", pa.array(["a", "b"] * (table.num_rows // 2)))
    with pytest.raises(EluteError, match="not of numbers"):
        ScoreAdjusted(score="word").fit(read(text))
    gap = table.set_column(3, "score", pa.array([None, *table["score"].to_pylist()[1:]]))
    with pytest.raises(EluteError, match="null in some rows"):
        ScoreAdjusted(score="score").fit(read(gap))
    with pytest.raises(EluteError, match="needs `score=`"):
        elute.fit(read(table), "score-adjusted")
    with pytest.raises(EluteError, match="has no `score=`"):
        elute.fit(read(table), "naive", score="score")
    with pytest.raises(EluteError, match="no click"):
        nothing = table.set_column(5, "click", pa.array(np.zeros(table.num_rows, np.int64)))
        ScoreAdjusted(score="score").fit(read(nothing))


def test_a_log_without_queries_has_no_lists_to_compare_with():
    table = draw_table(6, lists=2)
    fit = ScoreAdjusted(score="score").fit(elute.read_log(table.drop(["query_id"]), item="doc_id", impressions="shown"))
    lists, items = fit.score_test_.comparisons
    assert lists.reason == "the log has no queries" and not items.reason
    assert fit.score_test_.verdict == "holds"


def test_items_of_several_queries_are_counted_within_them():
    table = draw_table(7).append_column("topic", pa.array(np.arange(3_000) % 7))
    by_item = elute.read_log(table, item="topic", impressions="shown")
    by_pair = read(table)
    ours, others = (ScoreAdjusted(score="score").fit(log) for log in (by_item, by_pair))
    assert ours.propensity_ == pytest.approx(others.propensity_)
    assert ours.propensity_log_se_ == pytest.approx(others.propensity_log_se_, rel=1e-6)
    assert len(ours.relevance_values_) == 7


@pytest.mark.slow
@pytest.mark.parametrize("lists", [1, 2])
def test_where_it_holds_intervals_do_and_it_is_seldom_contradicted(lists):
    held, contradicted = [], 0
    for seed in range(30):
        rows = rows_of(draw_table(seed, queries=200, lists=lists))
        bins = bin_scores(rows.score, rows.shown)
        fit = fit_pooled(rows, bins, 10, seed=0)
        off = fit.log_o - fit.log_o[0] - np.log(PROPENSITIES / PROPENSITIES[0])
        held.append(np.abs(off)[1:] <= 1.96 * fit.influence.errors(0)[1:])
        contradicted += judge_score(rows, bins, fit).verdict == "contradicted"
    assert 0.9 <= np.mean(held) <= 0.99
    assert contradicted <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken", [{"shift": 2.0}, {"noise": 0.5}, {"noise": 0.5, "lists": 2}], ids=["shifted", "noisy", "noisy, varied"]
)
def test_worlds_that_break_it_are_noticed(broken):
    noticed = 0
    for seed in range(10):
        rows = rows_of(draw_table(seed, **broken))
        bins = bin_scores(rows.score, rows.shown)
        noticed += judge_score(rows, bins, fit_pooled(rows, bins, 10, seed=0)).verdict == "contradicted"
    assert noticed >= 8


def test_the_bootstrap_agrees_with_the_sandwich_and_says_what_it_drew():
    log = read(draw_table(11, queries=150, lists=2))
    plain, drawn = (elute.fit(log, "score-adjusted", score="score", bootstrap=b) for b in (None, 150))
    errors, others = plain.propensity_errors, drawn.propensity_errors
    assert others[0] == errors[0] == 0
    assert others[1:] == pytest.approx(errors[1:], rel=0.3)
    assert drawn.propensities is not None and {"low", "high"} <= set(drawn.propensities.column_names)
    low, o, high = (drawn.propensities[name].to_numpy()[1:] for name in ("low", "propensity", "high"))
    assert ((low < o) & (o < high)).all()
    assert drawn.summary["bootstrap"] == {
        "cluster": "query_id",
        "replicates": 150,
        "clusters": 150,
        "disconnected": 0,
        "failed": 0,
    }
    of_items = [fit.relevance["log_se"].to_numpy() for fit in (plain, drawn)]
    assert np.nanmedian(of_items[1] / of_items[0]) == pytest.approx(1, abs=0.1)
    again = elute.fit(log, "score-adjusted", score="score", bootstrap=150)
    assert (again.propensity_errors == others).all()
    with pytest.raises(EluteError, match="draws queries"):
        elute.fit(log, "score-adjusted", score="score", bootstrap=10, cluster="position")


def label_table(table, relevance):
    return table.select(["query_id", "doc_id"]).append_column("relevance", pa.array(relevance))


def test_labels_test_the_score():
    """One fixed list a query and no more than 120 queries: only labels tell. They do where the policy saw more."""
    rng = np.random.default_rng(12)
    said = {}
    for name, seen in (("score", 0.0), ("more", 1.2)):
        score, hidden = rng.normal(size=(2, 120, 10))
        order = np.argsort(-score - seen * hidden, axis=1)
        score, hidden = (np.take_along_axis(part, order, axis=1) for part in (score, hidden))
        relevance = np.exp(0.5 * np.minimum(score + hidden, 2.0) - 1.2)
        query, k = np.indices(score.shape).reshape(2, -1)
        columns = {"query_id": query, "doc_id": np.arange(len(k)), "position": k + 1, "score": score.ravel()}
        clicks = rng.binomial(20, PROPENSITIES[k] * relevance.ravel())
        table = pa.table({**columns, "shown": np.full(len(k), 20), "click": clicks})
        fit = elute.fit(read(table), "score-adjusted", score="score", labels=label_table(table, relevance.ravel()))
        said[name] = {one["with"]: one for one in fit.summary["score"]["comparisons"]}["labels"]
        ratio = fit.summary["score"]["ratio"]
        assert said[name]["other"] == pytest.approx(ratio / said[name]["gap"])
    assert said["score"]["p_value"] > 0.01 and said["score"]["low"] < 1 < said["score"]["high"]
    assert said["more"]["p_value"] < 1e-6 and said["more"]["gap"] > 1.5


def test_the_gap_of_labels_is_that_of_a_poisson_regression():
    """Labels adjusted for the score by a plain regression: their contrast and its clustered error."""
    table = draw_table(13, queries=40)
    rng = np.random.default_rng(0)
    rows = rows_of(table)
    bins = bin_scores(rows.score, rows.shown)
    pooled = fit_pooled(rows, bins, 10, seed=0)
    labels = rng.random(int(rows.whole.max()) + 1) + 0.2
    found = judge_score(rows, bins, pooled, labels).comparisons[2]
    x = np.hstack([bins.basis[bins.bin], np.eye(10)[rows.factor]])
    width = bins.basis.shape[1]
    penalty = np.zeros((x.shape[1],) * 2)
    penalty[:width, :width] = pooled.stiffness * bins.penalty + RIDGE * np.eye(width)
    mass = rows.shown * labels[rows.whole] / labels.max()
    beta = fit_poisson(x, rows.shown, mass, penalty)
    covariance = find_clustered_covariance(x, rows.shown, mass, penalty, beta, rows.query)[width:, width:]
    shown, clicks, weight = (np.bincount(rows.factor, part) for part in (rows.shown, rows.clicked, mass))
    rate = np.log(np.maximum(clicks, 0.5) / shown)
    apart = rate - weight @ rate / weight.sum()
    well = clicks >= clicks.max() / 100
    contrast = weight * apart / (weight @ apart**2) * np.ptp(rate[well])
    assert np.log(found.gap) == pytest.approx(contrast @ beta[width:], abs=1e-5)
    error = np.sqrt(contrast @ covariance @ contrast)
    assert np.log(found.high / found.gap) == pytest.approx(2.0227 * error, rel=1e-3)


def test_labels_that_say_nothing():
    table = draw_table(14, queries=20)
    with pytest.raises(EluteError, match="has no `labels=`"):
        elute.fit(read(table), "naive", labels=label_table(table, np.ones(table.num_rows)))
    with pytest.raises(EluteError, match="below 0"):
        elute.fit(read(table), "score-adjusted", score="score", labels=label_table(table, -np.ones(table.num_rows)))
    nothing = elute.fit(read(table), "score-adjusted", score="score", labels=label_table(table, np.zeros(200)))
    assert nothing.summary["score"]["comparisons"][2]["reason"] == "no item has a label above 0"


def test_few_clicks_tell_nothing():
    fit = ScoreAdjusted(score="score").fit(read(draw_table(8, queries=12, pages=2)))
    assert fit.score_test_.verdict == "untestable"


def test_positions_without_a_click_have_a_propensity_of_0():
    table = draw_table(9)
    clicks = np.where(table["position"].to_numpy() == 10, 0, table["click"].to_numpy())
    fit = ScoreAdjusted(score="score").fit(read(table.set_column(5, "click", pa.array(clicks))))
    assert fit.propensity_[-1] == 0 and np.isnan(fit.propensity_log_se_[-1])
    assert np.isfinite(fit.propensity_log_se_[:-1]).all()
    assert fit.converged_ is False or not np.isnan(fit.relevance_values_).any()


def test_items_across_queries_have_a_score_in_each(tmp_path: Path) -> None:
    """Also where cells were counted already, of items that do not tell their query."""
    rng = np.random.default_rng(0)
    query, doc, position = rng.integers(0, 60, 8_000), rng.integers(0, 20, 8_000), rng.integers(1, 6, 8_000)
    score = (np.sin(31 * query + 7 * doc) + 1) / 2
    click = rng.random(8_000) < (0.1 + 0.6 * score) / position
    columns = {"query_id": query, "doc_id": doc, "position": position, "score": score, "click": click}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    for memory in (None, 1 << 29):
        one, other = (
            elute.fit(tmp_path / "log.parquet", "score-adjusted", score="score", item=item, memory=memory)
            for item in (None, "doc_id")
        )
        assert one.propensities is not None and other.propensities is not None
        assert one.propensities["propensity"].to_pylist() == pytest.approx(other.propensities["propensity"].to_pylist())

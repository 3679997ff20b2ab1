"""Links and a score combined: against the whole likelihood written plainly, jackknifes, exact clicks, broken worlds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import elute
from elute.errors import EluteError
from elute.estimate.combined.graph import fit_graph
from elute.estimate.combined.linked import fit_linked
from elute.estimate.combined.model import ScoreLinked
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.scored.conditional import RIDGE
from elute.estimate.scored.pooled import fit_pooled
from elute.estimate.scored.rows import ScoredRows, read_rows
from elute.estimate.scored.spline import bin_scores
from elute.progress import silent
from reference.plain_frailty import measure_frailty

O = np.array([0.7, 0.5, 0.35, 0.2, 0.12, 0.08])  # noqa: E741
LOG_O = np.log(O / O[0])


def draw_rows(seed, queries=30, items=8, pages=30, *, crossing=False, exact=False, spread=0.5) -> ScoredRows:
    """Items ranked by a score with noise, shown at two positions: among 1 to 3 or among 4 to 6, unless `crossing`."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), items)
    score = rng.normal(size=len(query))
    noise = 1.0 if exact else rng.gamma(1 / spread**2, spread**2, len(query))
    relevance = 0.4 * np.exp(0.6 * np.minimum(score, 1.4) - 0.4) * noise
    high = rng.random(len(query)) < 1 / (1 + np.exp(-2 * score))
    low, length = (0, 6) if crossing else (np.where(high, 0, 3), 3)
    first = rng.integers(0, length, len(query))
    second = (first + rng.integers(1, length, len(query))) % length
    both = np.r_[low + first, low + second]
    item = np.tile(np.arange(len(query)), 2)
    mean = pages * O[both] * np.minimum(relevance, 1)[item]
    clicked = mean if exact else rng.binomial(pages, mean / pages).astype(float)
    shown = np.full(len(item), float(pages))
    return ScoredRows(query[item], item, item, score[item][:, None], both, shown, clicked, True)


def fit(rows, component, target=0.1):
    bins = bin_scores(rows.score, rows.shown)
    pooled = fit_pooled(rows, bins, len(O), seed=0)
    return bins, pooled, fit_linked(rows, bins, pooled, component, target)


ONE, TWO = np.zeros(6, np.int64), np.array([0, 0, 0, 1, 1, 1])


def test_loose_ratios_are_those_of_the_whole_likelihood():
    rows = draw_rows(1, queries=6, pages=20, crossing=True, spread=1.0)
    bins, pooled, found = fit(rows, ONE, target=0.0)
    assert not found.known.any() and found.converged and found.variance > 0.1
    width, held = bins.basis.shape[1], pooled.stiffness * bins.penalty

    def lose(beta):
        log_o, s = np.r_[0.0, beta[:5]], beta[6:]
        mean = rows.shown * np.exp(beta[5] + log_o[rows.factor] + bins.basis[bins.bin] @ s)
        rest = beta[5] + log_o
        kept = 0.5 * s @ held @ s + 0.5 * RIDGE * (s @ s + rest @ rest)
        return kept - measure_frailty(rows.item, mean, rows.clicked, found.variance)

    best = minimize(lose, np.zeros(6 + width), method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    assert found.log_o - found.log_o[0] == pytest.approx(np.r_[0.0, best.x[:5]], abs=2e-4)


def test_known_ratios_are_those_of_items_and_scales_the_scores():
    rows = draw_rows(2, queries=40, pages=200)
    bins, pooled, found = fit(rows, TWO, target=0.2)
    assert found.known.tolist() == [True, True]
    graph = fit_graph(rows, 6).log_o
    for own in (TWO == 0, TWO == 1):
        assert np.ptp((found.log_o - graph)[own]) == pytest.approx(0, abs=1e-9)
    assert found.log_o - found.log_o[0] == pytest.approx(LOG_O, abs=0.35)

    def lose(beta):
        log_o, s = graph + beta[0] + beta[1] * TWO, beta[2:]
        total: np.ndarray = np.bincount(rows.item, rows.shown * np.exp(log_o[rows.factor] + bins.basis[bins.bin] @ s))
        clicks: np.ndarray = np.bincount(rows.item, rows.clicked)
        kept = 0.5 * s @ (pooled.stiffness * bins.penalty) @ s + 0.5 * RIDGE * (beta @ beta)
        items = np.arange(len(total))
        return kept - measure_frailty(items, total, clicks, found.variance)

    best = minimize(lose, np.zeros(2 + bins.basis.shape[1]), method="BFGS", options={"gtol": 1e-6, "maxiter": 3000})
    scale = (found.log_o - graph)[3] - (found.log_o - graph)[0]
    assert scale == pytest.approx(best.x[1], abs=2e-3)


@pytest.mark.parametrize("component, target", [(ONE, 0.0), (TWO, 0.5)], ids=["loose", "known"])
def test_errors_are_those_of_a_jackknife_of_queries(component, target):
    rows = draw_rows(3, queries=40, pages=100, crossing=component is ONE)
    bins, pooled, found = fit(rows, component, target)
    assert found.known.all() == (target > 0)
    left = []
    for query in range(40):
        kept = rows.query != query
        some = ScoredRows._make([*(np.asarray(part)[kept] for part in rows[:-1]), True])
        left.append(fit_linked(some, bins._replace(bin=bins.bin[kept]), pooled, component, target).log_o)
    apart = np.array(left) - np.array(left)[:, :1]
    plain = np.sqrt(((apart - apart.mean(axis=0)) ** 2).sum(axis=0) * 39 / 40)
    assert found.errors(0)[1:] == pytest.approx(plain[1:], rel=0.2)


def test_exact_clicks_give_the_truth_across_components():
    rows = draw_rows(4, queries=200, pages=10**6, exact=True)
    found = fit(rows, TWO)[2]
    assert found.log_o - found.log_o[0] == pytest.approx(LOG_O, abs=0.02)
    assert found.variance < 1e-3


def test_the_less_a_score_says_the_more_links_count():
    """A score that is off by factor bends the combination less where relevance varies more beyond it."""
    gaps = []
    for spread in (0.05, 1.0):
        rows = draw_rows(5, queries=200, pages=50, crossing=True, spread=spread)
        bent = rows._replace(score=rows.score - 0.3 * rows.factor[:, None])
        _, pooled, found = fit(bent, ONE, target=0.0)
        graph = fit_graph(rows, 6).log_o
        off = np.linalg.norm((found.log_o - found.log_o[0]) - (graph - graph[0]))
        gaps.append(off / np.linalg.norm((pooled.log_o - pooled.log_o[0]) - (graph - graph[0])))
    assert gaps[1] < 0.6 * gaps[0] < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("component, crossing", [(ONE, True), (TWO, False)], ids=["loose", "apart"])
def test_intervals_hold(component, crossing):
    held = []
    for seed in range(25):
        rows = draw_rows(100 + seed, queries=60, crossing=crossing)
        found = fit(rows, component)[2]
        off = np.abs(found.log_o - found.log_o[0] - LOG_O)[1:]
        held.append(off <= 1.96 * found.errors(0)[1:])
    assert 0.87 <= np.mean(held) <= 0.99


def table_of(rows: ScoredRows, **more) -> pa.Table:
    columns = {"query_id": rows.query, "doc_id": rows.item, "position": rows.factor + 1, "score": rows.score[:, 0]}
    counts = {"shown": rows.shown.astype(int), "click": rows.clicked.astype(int)}
    return pa.table({**columns, **counts, **more})


def test_the_model_scales_components_and_its_items():
    table = table_of(draw_rows(6, queries=150, pages=100))
    log = elute.read_log(table, impressions="shown")
    model = ScoreLinked(score="score").fit(log)
    assert np.log(model.propensity_) - np.log(model.propensity_[0]) == pytest.approx(LOG_O, abs=0.25)
    assert set(model.component_) == {0} and set(model.parts_) == {0, 1}
    alone = ScoreAdjusted(score="score").fit(log)
    assert (model.propensity_log_se_[1:3] < alone.propensity_log_se_[1:3]).all()
    row, error = model.relevance_.to_pylist()[11], model.relevance_log_se_[11]
    own = [one for one in table.to_pylist() if one["doc_id"] == row["doc_id"]]
    weight = np.zeros(6)
    for one in own:
        weight[one["position"] - 1] = one["shown"] * model.propensity_[one["position"] - 1]
    assert row["relevance"] == pytest.approx(row["clicks"] / weight.sum())
    reference = int(np.flatnonzero(model.propensity_ == 1)[0])
    to = np.eye(6) - np.eye(6)[reference]
    through = weight @ (to @ model.linked_.covariance @ to.T) @ weight / weight.sum() ** 2
    n, mean = sum(one["shown"] for one in own), row["clicks"] / sum(one["shown"] for one in own)
    assert error**2 == pytest.approx(through + (1 - mean) / (n * mean), rel=0.1)


def test_items_link_factors_across_queries():
    """An item is a document: what it links, it links over all queries, while its scores are of each."""
    rows = draw_rows(7, queries=60)
    shifted = rows._replace(query=rows.query + 60 * (rows.factor % 2))
    log = elute.read_log(table_of(shifted), impressions="shown", item="doc_id")
    model = ScoreLinked(score="score").fit(log)
    assert set(model.parts_) == {0, 1}
    within = ScoreLinked(score="score").fit(elute.read_log(table_of(shifted), impressions="shown"))
    assert len(set(within.parts_)) > 2
    graph = fit_graph(rows, 6).log_o
    if model.linked_.known.all():
        assert np.log(model.propensity_[2] / model.propensity_[1]) == pytest.approx(graph[2] - graph[1], abs=1e-6)
    assert model.propensity_log_se_[1] < within.propensity_log_se_[1]


def test_a_sparse_log_is_the_scores():
    """Most items were shown once: hardly anything links factors."""
    rng = np.random.default_rng(8)
    rows = draw_rows(8, queries=400, pages=20)
    once = (np.arange(len(rows.item)) < len(rows.item) // 2) | (rng.random(len(rows.item)) < 0.03)
    log = elute.read_log(table_of(rows).filter(pa.array(once)), impressions="shown")
    model, alone = ScoreLinked(score="score").fit(log), ScoreAdjusted(score="score").fit(log)
    assert model.converged_ and not model.linked_.known.all()
    assert np.abs(np.log(model.propensity_ / alone.propensity_)).max() < 0.25
    assert (model.propensity_log_se_ <= alone.propensity_log_se_ * 1.05).all()


def test_positions_without_a_click_have_a_propensity_of_0():
    rows = draw_rows(9, queries=40)
    rows = rows._replace(clicked=np.where(rows.factor == 5, 0.0, rows.clicked))
    model = ScoreLinked(score="score").fit(elute.read_log(table_of(rows), impressions="shown"))
    assert model.propensity_[5] == 0 and np.isnan(model.propensity_log_se_[5])
    assert np.isfinite(model.propensity_log_se_[:5]).all()


def test_several_scores_add_up():
    """Where two columns rank together, one alone leaves relevance tied to positions, and both do not."""
    rng = np.random.default_rng(10)
    query = np.repeat(np.arange(300), 6)
    a, b = rng.normal(size=(2, len(query)))
    order = np.argsort(-(a + b).reshape(300, 6) - 0.4 * rng.normal(size=(300, 6)), axis=1)
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.broadcast_to(np.arange(6), order.shape), axis=1)
    factor = position.ravel()
    clicks = rng.binomial(50, np.minimum(O[factor] * 0.35 * np.exp(0.35 * a + 0.35 * b), 1))
    columns = {"query_id": query, "doc_id": np.arange(len(query)), "position": factor + 1, "a": a, "b": b}
    log = elute.read_log(pa.table({**columns, "shown": np.full(len(query), 50), "click": clicks}), impressions="shown")
    both, one = (np.log(ScoreAdjusted(score=score).fit(log).propensity_) for score in ("a,b", ["a"]))
    assert both - both[0] == pytest.approx(LOG_O, abs=0.2)
    assert np.abs(one - one[0] - LOG_O).max() > 0.3
    found = ScoreAdjusted(score=["a", "b"]).fit(log)
    assert found.by_score_.column_names == ["a", "b", "relevance", "impressions", "clicks"]
    assert found.summarise_score()["column"] == "a,b"
    rows = read_rows(log, ("a", "b"), "raw", silent)
    assert sorted(map(tuple, rows.score.tolist())) == sorted(zip(a.tolist(), b.tolist(), strict=True))
    by_item = {row["doc_id"]: row["by_score"] for row in found.relevance_.to_pylist()}
    wanted = 0.35 * np.exp(0.35 * a + 0.35 * b) * O[0]
    assert np.corrcoef(np.log([by_item[doc] for doc in range(len(a))]), np.log(wanted))[0, 1] > 0.95


def test_too_many_factors_are_refused(monkeypatch):
    monkeypatch.setattr("elute.estimate.combined.model.MOST_FACTORS", 3)
    with pytest.raises(EluteError, match="more than 3 factors"):
        ScoreLinked(score="score").fit(elute.read_log(table_of(draw_rows(11)), impressions="shown"))

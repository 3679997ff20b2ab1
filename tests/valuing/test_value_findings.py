"""Queries that win and lose, metrics, bounds, tests to come, clusters and draws, each against something else."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import false_discovery_control, norm
from scipy.stats import t as student
from value_worlds import as_table, draw_rows, known_look, pose_value, rank

import elute
from elute.fits.fit import Fit
from elute.simulation import toy
from elute.simulation.grades import PROPENSITIES
from elute.valuing.findings.experiment import plan_test
from elute.valuing.findings.metrics import _measure, measure_metrics
from elute.valuing.findings.queries import adjust, find_effects
from elute.valuing.worth.contrasts import ValueInterval, contrast
from elute.valuing.worth.find import find_worth
from elute_reproduce.value.runs import pose_setting
from elute_reproduce.value.worlds import DOCS, PLACES, Truth, ValueWorld, count

ORDERS = {"x": ["d", "a", "b"], "y": ["c", "b", "d"]}
BIAS = "position,context"


def test_q_values_are_those_of_scipy() -> None:
    p = np.random.default_rng(0).random(50) ** 3
    assert adjust(p) == pytest.approx(false_discovery_control(p))
    assert len(adjust(np.empty(0))) == 0


def test_a_test_of_that_size_has_that_power() -> None:
    found = plan_test(ValueInterval(0.05, 0.1, 0.0, 0.0), 1.3)
    error = np.sqrt(2 * 1.3 / found["pages_each_arm"])
    assert norm.sf(1.96 - 0.05 / error) == pytest.approx(0.8, abs=1e-3)
    assert found["evidence_pages"] == pytest.approx(2 * 1.3 / 0.1**2, abs=1)
    both = 1 / (1 / 0.1**2 + found["pages_left"] / (2 * 1.3))
    assert norm.sf(1.96 - 0.05 / np.sqrt(both)) == pytest.approx(0.8, abs=1e-3)
    assert plan_test(ValueInterval(0.0, 0.1, 0.0, 0.0), 1.3)["pages_each_arm"] is None


def test_effects_by_query_add_up_and_their_errors_are_those_of_the_query_alone() -> None:
    log = as_table(draw_rows(800, 4))
    setting = pose_value(log, known_look(log), rank(ORDERS), clip=0.4).setting
    every = np.ones(2, np.bool_)
    effects = find_effects(find_worth("snips", setting, every), 1, setting, every)
    pages = setting.traffic.pages
    worth = find_worth("snips", setting, every)
    assert effects.difference @ pages / pages.sum() == pytest.approx(worth.value[1] - worth.value[0])
    assert effects.of_group.sum() == pytest.approx(effects.difference @ pages)
    for query in range(2):
        alone = find_worth("snips", setting, np.arange(2) == query)  # one query: no traffic between queries
        assert effects.difference[query] == pytest.approx(alone.contrast(1, 0)[0])
        typical = alone.contrast(1, 0)[1]
        assert effects.se[query] == pytest.approx(typical, rel=0.05)


def test_metrics_are_those_of_a_plain_page() -> None:
    log = as_table([(q, d, at, "phone", 1) for q in "xy" for _ in range(5) for at, d in enumerate("abc", 1)])
    posed = pose_value(log, known_look(log), rank({"x": ["c", "a"], "y": ["b", "a", "c"]}))
    traffic, one = posed.setting.traffic, posed.setting.exposures[0]
    r = {"a": 0.2, "b": 0.5, "c": 0.9}
    relevance = np.array([r[doc] for doc in posed.names.doc.to_pylist()])
    order = np.argsort(traffic.query, kind="stable")
    begin = np.searchsorted(traffic.query[order], np.arange(3))
    look = {0: 1.0, 1: 0.6, 2: 0.3}
    cells = traffic.cells
    found = _measure(
        np.arange(2),
        begin,
        order,
        cells.offsets,
        cells.factor,
        cells.impressions.astype(np.float64),
        traffic.offsets,
        traffic.factor,
        traffic.shown,
        one.item,
        traffic.place,
        posed.setting.seen.usable,
        relevance,
        2,
        traffic.pages,
        np.ones(2),
    )
    dcg: Any = {"x": look[0] * r["c"] + look[1] * r["a"], "y": look[0] * r["b"] + look[1] * r["a"]}
    ideal = look[0] * r["c"] + look[1] * r["b"]
    success = {"x": 1 - (1 - r["c"]) * (1 - look[1] * r["a"]), "y": 1 - (1 - r["b"]) * (1 - look[1] * r["a"])}
    assert found[0] == pytest.approx(
        [
            np.mean(list(dcg.values())),
            np.mean([v / ideal for v in dcg.values()]),
            np.mean(list(success.values())),
            np.mean([dcg["x"], dcg["y"] + look[2] * r["c"]]),
        ]
    )
    assert found[1][0] == pytest.approx(look[0] * r["a"] + look[1] * r["b"])


def test_what_is_apart_is_not_valued_but_bounded() -> None:
    """A ranking that takes documents across the two blocks of the broken log, whose truth is known."""
    log, truth = toy.simulate(4_000, 40, True, 3), toy.draw_truth(40, 3)
    fit = elute.fit(log, allow_unidentified=True)
    shown = set(zip(log["query_id"].to_pylist(), log["doc_id"].to_pylist(), strict=True))
    rows = [row for row in truth.to_pylist() if (row["query_id"], row["doc_id"]) in shown]
    best = pa.table(
        {name: [row[name] for row in rows] for name in ("query_id", "doc_id")}
        | {"score": [row["relevance"] for row in rows]}
    )
    row = elute.value(log, fit, best).to_dict()["rankings"][1]
    assert set(row["unvalued"]) == {"other_component"}
    assert 0 < row["valued_share"] < 0.5
    assert row["difference_worst"] <= _true_difference(log, rows) <= row["difference_best"]
    same = best.set_column(2, "score", pa.array([row["score"] for row in rows]))
    whole = elute.value(log, fit, same).to_dict()
    assert whole["valued_share"] == 1.0
    assert whole["rankings"][1]["verdict_all"] == whole["rankings"][1]["verdict"]


def _true_difference(log: pa.Table, rows: list[dict[str, Any]]) -> float:
    relevance = {(row["query_id"], row["doc_id"]): row["relevance"] for row in rows}
    ranked: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: -row["relevance"]):
        ranked.setdefault(row["query_id"], []).append(row["doc_id"])
    total = 0.0
    for row in log.to_pylist():
        look, query = PROPENSITIES[row["position"] - 1], row["query_id"]
        total += look * (relevance[query, ranked[query][row["position"] - 1]] - relevance[query, row["doc_id"]])
    return total / len(set(log["session_id"].to_pylist()))


def test_propensities_from_elsewhere_and_of_another_log() -> None:
    rows = draw_rows(600, 5)
    log, other = as_table(rows), as_table(draw_rows(600, 6))
    own = elute.value(log, elute.fit(log, bias=BIAS), rank(ORDERS), bias=BIAS).to_dict()
    given = elute.value(log, known_look(log), rank(ORDERS), bias=BIAS).to_dict()
    foreign = elute.value(log, elute.fit(other, bias=BIAS), rank(ORDERS), bias=BIAS).to_dict()
    assert "taken as known exactly" in " ".join(given["notes"])
    assert "another log" in " ".join(foreign["notes"])
    assert own["notes"] == []
    given_width, foreign_width = (one["rankings"][1]["high"] - one["rankings"][1]["low"] for one in (given, foreign))
    assert foreign_width > given_width


def test_clicks_that_come_together_say_less() -> None:
    """Every page four times over, as one user's: all that it tells is what one of the four does."""
    rows = draw_rows(300, 7)
    page, pages = 0, []
    for row in rows:
        page += row[2] == 1
        pages.append(page)
    log = as_table(rows).append_column("user", pa.array(pages))
    four = pa.concat_tables([log] * 4)
    once, apart, together = (
        elute.value(one, known_look(one), rank(ORDERS), bias=BIAS, cluster=cluster).to_dict()["rankings"][1]
        for one, cluster in ((log, None), (four, None), (four, "user"))
    )
    errors = [{one["estimator"]: one["se"] for one in row["estimators"]}["ips"] for row in (once, apart, together)]
    assert errors[2] == pytest.approx(errors[0], rel=0.25)
    assert errors[1] < 0.85 * errors[2]


def test_draws_agree_with_the_delta_method() -> None:
    log = as_table(draw_rows(1_500, 8))
    fit = elute.fit(log, bias=BIAS)
    drawn = elute.value(log, fit, rank(ORDERS), bias=BIAS, bootstrap=60).to_dict()["rankings"][1]["bootstrap"]
    posed = pose_value(log, fit, rank(ORDERS)).setting
    plain = replace(posed, seen=replace(posed.seen, log_se=np.minimum(posed.seen.log_se, 1e-9)), dispersion=1.0)
    delta = contrast(find_worth("snips", plain, np.ones(2, np.bool_))).differences[0].se
    assert 0.7 < drawn["se"] / delta < 1.4


def test_queries_drawn_are_what_their_values_differ_by() -> None:
    """With propensities known, the variance is that of a mean over clusters of unequal size, as in any textbook."""
    log, truth = toy.simulate(6_000, 60, False, 5), toy.draw_truth(60, 5)
    known = pa.table({"position": pa.array(range(1, 11), pa.int32()), "propensity": list(PROPENSITIES)})
    fit = elute.fit(log, "ipw", propensities=known)
    new = truth.select(["query_id", "doc_id"]).append_column("score", truth["relevance"])
    pages, queries = (elute.value(log, fit, new, missing="logged", cluster=c) for c in (None, "query_id"))
    row, wide = (one.to_dict()["rankings"][1] for one in (pages, queries))
    assert row["difference"] == wide["difference"]
    assert wide["difference_high"] - wide["difference_low"] > row["difference_high"] - row["difference_low"]
    table = queries.by_query.filter(queries.by_query["valued"])
    n, apart = (table[name].to_numpy() for name in ("pages", "difference: ranking 1"))
    mean = n @ apart / n.sum()
    error = np.sqrt((n**2 @ (apart - mean) ** 2) * len(n) / (len(n) - 1)) / n.sum()
    half = (wide["difference_high"] - wide["difference_low"]) / 2
    assert half == pytest.approx(student.ppf(0.975, 59) * error, rel=1e-4)


def test_a_rankers_scores_value_documents_never_shown() -> None:
    """Scores that are relevance itself: calibrated, they give the truth."""
    log, truth = toy.simulate(8_000, 60, False, 5), toy.draw_truth(60, 5)
    fit = elute.fit(log)
    best = truth.select(["query_id", "doc_id"]).append_column("score", truth["relevance"])
    found = elute.value(log, fit, best, scores=best).to_dict()
    assert found["valued_share"] < 1
    by = {one["estimator"]: one for one in found["rankings"][1]["estimators"]}
    expected = _true_value(log, truth)
    assert by["dm-features"]["low"] <= expected <= by["dm-features"]["high"]
    assert any("dm-features values 100.0%" in note for note in found["notes"])


def _true_value(log: pa.Table, truth: pa.Table) -> float:
    best: dict[str, list[float]] = {}
    for row in truth.to_pylist():
        best.setdefault(row["query_id"], []).append(row["relevance"])
    ranked = {query: sorted(values, reverse=True) for query, values in best.items()}
    rows = log.to_pylist()
    total = sum(PROPENSITIES[row["position"] - 1] * ranked[row["query_id"]][row["position"] - 1] for row in rows)
    return float(total / len({row["session_id"] for row in rows}))


def test_values_that_are_too_small_show_no_loss() -> None:
    """Weights are cut off where documents were seen least: the better ranking looks worse."""
    log, fit = _show_twice()
    rankings = [_rank_all("cba"), _rank_all("bca")]
    found = elute.value(log, fit, rankings, estimator="ips-clipped", bias=BIAS).to_dict()
    row = found["rankings"][1]
    by = {one["estimator"]: one for one in row["estimators"]}
    assert by["snips"]["verdict"] == "better" and by["ips-clipped"]["difference_high"] < 0
    assert any("go by snips and dcg" in note for note in found["notes"])
    assert {row["verdict"], row["verdict_all"], by["ips-clipped"]["verdict"]} == {"cannot tell"}
    assert row["by_query"]["losers"] == 0 and {one["verdict"] for one in found["between"]} == {"cannot tell"}


def test_metrics_say_of_clicks_what_the_clicks_say() -> None:
    """A ranking by chance on a sparse log of a good ranker: the posterior alone, which takes documents that were hardly
    shown for those shown at their places, is far off."""
    truth = Truth(ValueWorld(queries=400, pages=8_000, strong=True, large=False), 0)
    truth.ranking = np.random.default_rng(5).permuted(np.tile(np.arange(DOCS), (400, 1)), axis=1)[:, :PLACES]
    setting = pose_setting(truth, *count(truth.draw(np.random.default_rng(0))))
    valued = setting.exposures[0].valued
    anchor = find_worth("snips", setting, valued)
    model, snips = (contrast(find_worth(name, setting, valued)).differences[0] for name in ("model", "snips"))
    found = measure_metrics(setting, setting.told, valued, PLACES, anchor)[1]
    assert abs(model.value - snips.value) > 2 * snips.se
    assert found["dcg"]["difference"] == pytest.approx(snips.value, abs=0.3 * snips.se)
    wide = found["dcg"]["difference_high"] - found["dcg"]["difference_low"]
    assert wide == pytest.approx(snips.high - snips.low, rel=0.25)
    assert {one["verdict"] for one in found.values()} == {"worse"}


def _show_twice() -> tuple[pa.Table, Fit]:
    """400 queries whose documents were shown twice each, the better the lower; with the true propensities."""
    rng, rows = np.random.default_rng(3), []
    for query, (place, doc) in product(range(400), enumerate("abc", 1)):
        shown = place, int(rng.integers(1, 4))
        r = 0.3 * place - 0.2
        rows += [(f"q{query}", doc, k, "phone", int(rng.random() < r * 0.2 ** (k - 1))) for k in shown]
    log = as_table(rows)
    return log, known_look(log, {(k, "phone"): 0.2 ** (k - 1) for k in (1, 2, 3)})


def _rank_all(order: str) -> pa.Table:
    return rank({f"q{query}": list(order) for query in range(400)})

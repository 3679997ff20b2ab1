"""Values against clicks weighed one by one; derivatives against differences; variances against all that can happen."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from value_worlds import LOOK, as_table, draw_rows, known_look, pose_value, rank

import elute
from elute.cells.counts import Cells
from elute.valuing.worth.contrasts import find_point
from elute.valuing.worth.estimators import estimate, find_posterior
from elute.valuing.worth.find import collect, find_worth
from elute.valuing.worth.influence import measure_spread
from reference import plain_value

ORDERS = {"x": ["d", "a", "b"], "y": ["c", "b", "d", "a"]}
OTHER = {"x": ["a", "b"], "y": ["a", "b", "c"]}


@pytest.mark.parametrize(("name", "clip"), [("ips", None), ("ips-clipped", 0.4), ("snips", 0.4), ("snips", 1.0)])
def test_values_are_those_of_clicks_weighed_one_by_one(name: str, clip: float | None) -> None:
    """Two contexts, pages of two lengths, a ranking that is too short for some of them."""
    rows = draw_rows(300, 1)
    log = as_table(rows)
    posed = pose_value(log, known_look(log), rank(ORDERS), rank(OTHER), clip=clip)
    worth = find_worth(name, posed.setting, np.ones(2, np.bool_))
    for at, orders in enumerate((ORDERS, OTHER), 1):
        assert worth.value[at] == pytest.approx(plain_value.value(rows, LOOK, orders, name, clip or 0.0))
    assert worth.value[0] == pytest.approx(sum(row[4] for row in rows) / 300)


def test_without_clipping_dr_is_ips_whatever_the_model_says() -> None:
    log = as_table(draw_rows(200, 2))
    posed = pose_value(log, known_look(log), rank(ORDERS), clip=1e-9)
    all_of = np.ones(2, np.bool_)
    dr, ips = (find_worth(name, posed.setting, all_of) for name in ("dr", "ips"))
    assert dr.value == pytest.approx(ips.value)
    assert dr.covariance == pytest.approx(ips.covariance, rel=1e-6)


def test_the_ranking_that_was_shown_is_worth_its_clicks() -> None:
    """One order for all pages: nothing is extrapolated, so nothing differs."""
    rows = [("x", doc, at, "phone", int(n % (at + 1) == 0)) for n in range(50) for at, doc in enumerate("abc", 1)]
    log = as_table(rows)
    posed = pose_value(log, known_look(log), rank({"x": ["a", "b", "c"]}), clip=0.5)
    for name in ("ips", "snips", "model"):
        worth = find_worth(name, posed.setting, np.ones(1, np.bool_))
        difference, se = worth.contrast(1, worth.base[0])
        assert difference == pytest.approx(0.0, abs=1e-12)
        assert se == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["model", "ips", "ips-clipped", "snips", "dr"])
def test_slopes_and_gains_are_differences(name: str) -> None:
    """Of relevance by log α and by clicks, with the prior's means moved as α moves them."""
    log = as_table(draw_rows(400, 3))
    setting = pose_value(log, known_look(log), rank(ORDERS), clip=0.4).setting
    cells, seen = setting.traffic.cells, setting.seen
    posterior = find_posterior(cells, seen)
    found = estimate(name, cells, seen, posterior, setting.clip)
    item = np.repeat(np.arange(setting.traffic.n_items), np.diff(cells.offsets))

    def relevance(alpha: Any, clicks: Any) -> Any:
        moved = posterior
        if name in ("model", "dr"):
            grown = (alpha / seen.alpha)[cells.factor]
            shift = np.bincount(item, posterior.lean * grown)
            reach = np.bincount(item, cells.impressions * alpha[cells.factor])
            prior = posterior.prior * shift
            own = np.bincount(item, clicks - cells.clicks)
            moved = posterior._replace(
                prior=prior, rate=prior + posterior.weight * reach, shape=posterior.shape + posterior.weight * own
            )
        changed = Cells(cells.offsets, cells.factor, cells.impressions, clicks)
        return estimate(name, changed, replace(seen, alpha=alpha), moved, setting.clip).value

    step = 1e-6
    for factor in range(len(seen.alpha)):
        alpha = seen.alpha * np.where(np.arange(len(seen.alpha)) == factor, np.exp(step), 1.0)
        slope = (relevance(alpha, cells.clicks) - found.value) / step
        mine = np.bincount(item, np.where(cells.factor == factor, found.by_alpha, 0.0))
        assert mine == pytest.approx(slope, rel=1e-3, abs=1e-6)
    for cell in range(0, len(cells.factor), 5):
        more = cells.clicks + (np.arange(len(cells.factor)) == cell).astype(np.uint32)
        assert found.gain[cell] == pytest.approx((relevance(seen.alpha, more) - found.value)[item[cell]])


@pytest.mark.parametrize("name", ["ips", "snips"])
def test_the_variance_is_that_of_everything_that_can_happen(name: str) -> None:
    """A log of six impressions, all patterns of clicks, each as likely as the model has it."""
    pages = [("a", "b"), ("b", "a"), ("b", "c")]
    rows = [("x", doc, at, "phone") for page in pages for at, doc in enumerate(page, 1)]
    truth, ranking = {"a": 0.5, "b": 0.3, "c": 0.8}, {"x": ["c", "a"]}
    chance = [truth[doc] * LOOK[at, context] for _, doc, at, context in rows]
    values, weights = [], []
    for clicks in product((0, 1), repeat=len(rows)):
        filled = [(*row, click) for row, click in zip(rows, clicks, strict=True)]
        values.append(plain_value.value(filled, LOOK, ranking, name, 1.0 if name == "snips" else 0.0))
        weights.append(np.prod([p if click else 1 - p for p, click in zip(chance, clicks, strict=True)]))
    mean = float(np.dot(values, weights))
    variance = float(np.dot((np.array(values) - mean) ** 2, weights))
    assert mean == pytest.approx(LOOK[1, "phone"] * truth["c"] + LOOK[2, "phone"] * truth["a"])
    log = as_table([(*row, 1) for row in rows])
    posed = pose_value(log, known_look(log), rank(ranking), clip=1.0)
    setting = posed.setting
    exact = np.array([truth[doc] for doc in posed.names.doc.to_pylist()])
    found = estimate(name, setting.traffic.cells, setting.seen, None, setting.clip)
    given, _ = collect(setting, [found], np.ones(1, np.bool_))
    spread = measure_spread(given, exact, setting.traffic, setting.seen, 1.0)
    assert spread.clicks[1, 1] / len(pages) ** 2 == pytest.approx(variance)


def test_contrasts_of_one_and_of_two_that_are_independent() -> None:
    assert find_point(np.ones((1, 1))) == pytest.approx(1.96, abs=1e-4)
    assert find_point(np.eye(2)) == pytest.approx(2.2365, abs=0.03)  # Šidák's, of 1 - 0.95^(1/2)
    assert find_point(np.ones((2, 2))) == pytest.approx(1.96, abs=0.02)
    assert find_point(np.ones((1, 1)), clusters=5) == pytest.approx(2.776, abs=1e-3)


def test_intervals_hold_the_truth() -> None:
    """Propensities are fitted: errors of both, in one small world, drawn often."""
    each = zip("abcd", (0.1, 0.3, 0.5, 0.7), strict=True)
    truth = {(query, doc): r + shift for doc, r in each for query, shift in (("x", 0.0), ("y", 0.15))}
    ranking, inside, runs = {"x": ["d", "c", "b"], "y": ["d", "c", "b"]}, 0, 40
    for seed in range(runs):
        rows = draw_rows(600, 100 + seed, truth)
        log = as_table(rows)
        model = elute.PBM(relevance_prior="none").fit(elute.read_log(log, bias="position,context"))
        fit = elute.Fit.from_estimator("pbm", model, elute.read_log(log, bias="position,context"))
        worth = find_worth("snips", pose_value(log, fit, rank(ranking)).setting, np.ones(2, np.bool_))
        pages = sum(plain_value.count_pages(rows).values())
        clicks = sum(LOOK[at, context] * truth[query, ranking[query][at - 1]] for query, _, at, context, _ in rows)
        inside += abs(worth.value[1] - clicks / pages) <= 1.96 * np.sqrt(worth.covariance[1, 1])
    assert inside >= 0.85 * runs

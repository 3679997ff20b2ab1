"""Intervention harvesting: the truth from exact counts, plain versions, closed forms, errors, agreement with PBM."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Merge, counts_of, draw

import elute.estimate.models.harvest as harvest
from elute.errors import EluteError
from elute.estimate.models.harvest import Harvest
from elute.estimate.models.pbm import PBM
from reference.plain_harvest import all_pairs, pairs

WAYS = list(itertools.product(["pivot", "all-pairs"], ["mantel-haenszel", "paper"]))
ways = pytest.mark.parametrize(("method", "weights"), WAYS)


def fit(table, method, weights="mantel-haenszel", **options):
    return Harvest(method=method, weights=weights, **options).fit(counts_of(table), allow_unidentified=True)


def exact(shown, r, o, seed=0):
    """Cells whose clicks are what is expected of very different numbers of impressions."""
    rng = np.random.default_rng(seed)
    n = 10 ** rng.integers(3, 7, len(shown))
    return [(x, t, int(m), round(m * r[x] * o[t])) for (x, t), m in zip(shown, n, strict=True)]


@ways
def test_expected_clicks_give_the_truth(method, weights):
    """Though relevant items are shown first, and some factors share no item."""
    r, o = np.array([0.9, 0.8, 0.5, 0.3, 0.2, 0.1]), np.array([1.0, 0.7, 0.5, 0.2])
    shown = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 1), (3, 2), (4, 2), (4, 3), (5, 2), (5, 3)]
    found = fit(exact(shown, r, o), method, weights, tolerance=1e-9)
    assert found.converged_
    assert found.propensity_ == pytest.approx(o, rel=1e-9)
    assert found.relevance_values_ == pytest.approx(r, rel=1e-9)


@ways
def test_each_component_has_its_scale(method, weights):
    r, o = np.array([0.5, 0.4, 0.2, 0.8]), np.array([0.2, 0.1, 0.9, 0.3, 0.7])
    shown = [(0, 0), (0, 1), (1, 2), (1, 3), (2, 3), (2, 2), (3, 4)]
    found = fit(exact(shown, r, o), method, weights, tolerance=1e-9)
    assert found.propensity_ == pytest.approx([1, 0.5, 1, 1 / 3, 1], rel=1e-9)
    assert found.relevance_values_ == pytest.approx([0.1, 0.36, 0.18, 0.56], rel=1e-9)
    assert len(set(found.component_)) == 3
    assert found.propensity_log_se_[[0, 2, 4]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("weights", ["mantel-haenszel", "paper"])
@pytest.mark.parametrize("seed", range(3))
def test_against_plain_versions(weights, seed):
    table, _, _ = draw(seed, 40, 5, 0.6, 10)
    found = fit(table, "all-pairs", weights, tolerance=1e-9)
    assert np.log(found.propensity_ / found.propensity_[0]) == pytest.approx(
        all_pairs(table, weights == "paper"), abs=1e-6
    )
    sets = pairs(table, weights == "paper")
    found = fit(table, "pivot", weights, pivot=2)
    for t in range(5):
        at, back, _ = sets.get((t, 2), (1, 1, 0)) if t < 2 else (*sets.get((2, t), (1, 1, 0))[1::-1], 0)
        assert found.propensity_[t] / found.propensity_[2] == pytest.approx(at / back)


@pytest.mark.parametrize("method", ["pivot", "all-pairs"])
def test_relevance_is_clicks_by_their_reach(method):
    table, _, _ = draw(7, 25, 5, 0.6, 10)
    found = fit(table, method)
    item, factor, n, c = np.array(table).T
    assert found.relevance_values_ == pytest.approx(
        np.bincount(item, c) / np.bincount(item, n * found.propensity_[factor])
    )


@ways
def test_one_item_and_two_factors(method, weights):
    """The ratio of two click rates, with the variance of Proposition 1 of the identifiability paper."""
    found = fit([(0, 0, 400, 240), (0, 1, 400, 60)], method, weights, tolerance=1e-9)
    assert found.propensity_ == pytest.approx([1, 0.25])
    assert found.propensity_log_se_ == pytest.approx([0, np.sqrt((1 / 0.6 + 1 / 0.15 - 2) / 400)])
    assert found.relevance_log_se_ == pytest.approx([np.sqrt((1 - 0.6) / 0.6 / 400)])


def test_chains_are_short_and_then_strong():
    """Factor 3 shares no item with the pivot 0; of the links through 1 and 2, that through 2 has more clicks."""
    table = [
        *[(0, t, 1000, c) for t, c in enumerate((800, 500, 450))],
        *[(1, t, 50, c) for t, c in ((1, 20), (3, 9))],
        *[(2, t, 5000, c) for t, c in ((2, 2000), (3, 700))],
        *[(3, t, 9000, c) for t, c in ((3, 1000), (4, 500))],
        *[(4, t, 10, c) for t, c in ((1, 5), (4, 1))],
    ]
    found = fit(table, "pivot", pivot=0)
    third = 450 / 800 * 700 / 2000
    assert found.propensity_ == pytest.approx([1, 500 / 800, 450 / 800, third, 500 / 800 * 1 / 5])
    assert found.iterations_ == 1
    assert fit(table, "pivot", pivot=3).propensity_[3:] == pytest.approx([third, third / 2])


def nudged(table, cell, by):
    return [(x, t, n, c + by if number == cell else c) for number, (x, t, n, c) in enumerate(table)]


@ways
def test_errors_by_finite_differences(method, weights):
    """Move the clicks of one cell after the other, and add up what that does to the estimates."""
    r, o = np.array([0.9, 0.6, 0.5, 0.8, 0.2, 0.4]), np.array([1.0, 0.7, 0.5, 0.3])
    shown = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3), (4, 0), (4, 2), (4, 3), (5, 1)]
    n = [10**6, 4 * 10**6, 2 * 10**6, 10**6, 10**7, 10**6, 3 * 10**6, 10**6, 10**6, 10**7, 10**6, 5 * 10**6, 10**6]
    table = [(x, t, m, round(m * r[x] * o[t])) for (x, t), m in zip(shown, n, strict=True)]

    def estimates(table):
        found = fit(table, method, weights, tolerance=1e-9)
        return np.log(np.concatenate((found.propensity_, found.relevance_values_)))

    variance = np.zeros(10)
    for cell, (x, t, m, _) in enumerate(table):
        step = m // 1000
        slope = (estimates(nudged(table, cell, step)) - estimates(nudged(table, cell, -step))) / (2 * step)
        variance += slope**2 * m * r[x] * o[t] * (1 - r[x] * o[t])
    found = fit(table, method, weights)
    assert found.propensity_log_se_ == pytest.approx(np.sqrt(variance[:4]), rel=1e-4)
    assert found.relevance_log_se_ == pytest.approx(np.sqrt(variance[4:]), rel=1e-4)


@ways
def test_errors_by_simulation(method, weights):
    rng = np.random.default_rng(1)
    r, o = rng.uniform(0.2, 0.9, 40), np.array([1.0, 0.6, 0.4, 0.25])
    shown = [(x, t) for x in range(40) for t in range(4) if t == x % 4 or rng.random() < 0.4]
    n = 40 + rng.poisson(160, len(shown))
    found, claimed = [], []
    for _ in range(400):
        table = [(x, t, m, rng.binomial(m, r[x] * o[t])) for (x, t), m in zip(shown, n, strict=True)]
        one = fit(table, method, weights)
        found.append(np.log(np.concatenate((one.propensity_[1:], one.relevance_values_))))
        claimed.append(np.concatenate((one.propensity_log_se_[1:], one.relevance_log_se_)))
    ratio = np.std(found, axis=0) / np.sqrt(np.mean(np.square(claimed), axis=0))
    assert ratio.mean() == pytest.approx(1, abs=0.03)
    assert ratio == pytest.approx(1, abs=0.17)  # of 43, each with a standard error of 0.035
    bias = (np.mean(found, axis=0)[:3] - np.log(o[1:])) / np.std(found, axis=0)[:3]
    assert np.abs(bias).max() < 0.3


@ways
@pytest.mark.parametrize("seed", range(3))
def test_agreement_with_pbm(method, weights, seed):
    """Within both errors added up (they are far from independent), and near the truth."""
    table, _, o = draw(seed, 400, 10, 0.3, 300, relevance=(0.1, 0.8))
    found, pbm = fit(table, method, weights), PBM(relevance_prior="none").fit(counts_of(table), allow_unidentified=True)
    apart = np.abs(np.log(found.propensity_ / pbm.propensity_))
    assert (apart <= 3 * np.hypot(found.propensity_log_se_, pbm.propensity_log_se_)).all()
    away = np.abs(np.log(found.propensity_[1:] / o[1:])) / found.propensity_log_se_[1:]
    assert away.max() < 4
    assert (found.propensity_log_se_ >= 0.99 * pbm.propensity_log_se_).all()


def test_errors_fall_with_the_log():
    """Consistency: a hundred times the log, a tenth of the error."""
    for method in ("pivot", "all-pairs"):
        off = []
        for mean in (100, 10_000):
            tables = [draw(seed, 100, 6, 0.5, mean) for seed in range(10)]
            off.append(np.mean([np.abs(np.log(fit(t, method).propensity_ / o)) for t, _, o in tables]))
        assert off[1] == pytest.approx(off[0] / 10, rel=0.5)


def test_impressions_as_weights_pay_where_items_differ_in_them():
    rng = np.random.default_rng(3)
    spread = {}
    n = np.ceil(rng.pareto(0.7, (100, 2)) * 5 + 1).clip(max=10**5).astype(int)
    r = rng.uniform(0.2, 0.8, 100)
    clicks = rng.binomial(n, r[:, None] * np.array([1.0, 0.5]), (200, 100, 2))
    for weights in ("mantel-haenszel", "paper"):
        found = [fit([(x, t, n[x, t], c[x, t]) for x in range(100) for t in (0, 1)], "pivot", weights) for c in clicks]
        spread[weights] = np.std([np.log(one.propensity_[1] / one.propensity_[0]) for one in found])
    assert spread["mantel-haenszel"] < 0.8 * spread["paper"]


@pytest.mark.parametrize("method", ["pivot", "all-pairs"])
def test_what_cannot_be_reached(method):
    table = [
        (0, 0, 100, 50),
        (0, 1, 100, 30),
        (1, 1, 100, 40),
        (1, 2, 100, 0),
        (2, 2, 100, 20),
        (3, 1, 100, 10),
        (3, 3, 100, 0),
        (4, 4, 100, 0),
    ]
    found = fit(table, method)
    assert found.propensity_ == pytest.approx([1, 0.6, np.nan, 0, 0], nan_ok=True)
    assert found.relevance_values_[[1, 3]] == pytest.approx([0.4 / 0.6, 0.1 / 0.6])
    assert np.isnan(found.relevance_values_[2])
    assert found.relevance_values_[4] == 0
    assert not found.converged_
    assert "1 factors" in found.reason_
    assert "position 2" in found.reason_
    assert np.isnan(found.propensity_log_se_[2:]).all()
    assert np.isfinite(found.propensity_log_se_[:2]).all()
    assert np.isfinite(found.relevance_log_se_).tolist() == [True, True, False, True, False]
    assert np.isfinite(found.log_likelihood_)


@pytest.mark.parametrize("method", ["pivot", "all-pairs"])
def test_no_clicks_and_no_pairs(method):
    assert fit([(0, 0, 9, 0), (0, 1, 9, 0)], method).propensity_.tolist() == [0, 0]
    found = fit([(0, 0, 10, 5), (1, 1, 10, 2)], method)
    assert found.propensity_.tolist() == [1, 1]
    assert found.relevance_values_.tolist() == [0.5, 0.2]
    assert found.relevance_log_se_ == pytest.approx([np.sqrt(1 / 10), np.sqrt(0.8 / 2)])
    found = fit([(0, 0, 8, 8), (0, 1, 8, 8), (1, 0, 5, 5), (1, 1, 5, 5)], method)
    assert found.propensity_ == pytest.approx([1, 1])


def test_a_merge_makes_one_factor():
    table = [(0, 0, 1000, 400), (0, 1, 1000, 200), (1, 2, 1000, 300), (1, 3, 1000, 600)]
    for method in ("pivot", "all-pairs"):
        found = Harvest(method=method, tolerance=1e-9).fit(counts_of(table), plan=Merge((1, 2)))
        assert found.propensity_ == pytest.approx([1, 0.5, 0.5, 1])
        assert Harvest(method=method, pivot=3).fit(counts_of(table), plan=Merge((1, 2))).propensity_[
            1
        ] == pytest.approx(0.5)


def test_mistakes_are_named(monkeypatch):
    counts = counts_of([(0, 0, 9, 4), (0, 1, 9, 2)])
    for options, message in (
        ({"method": "some"}, "pivot, all-pairs"),
        ({"weights": "some"}, "mantel-haenszel, paper"),
        ({"pivot": 2}, "0 to 1, not 2"),
    ):
        with pytest.raises(EluteError, match=message):
            Harvest(**options).fit(counts)
    monkeypatch.setattr(harvest, "MOST_FACTORS", 1)
    with pytest.raises(EluteError, match="this log has 2"):
        Harvest().fit(counts)


def test_too_much_work_for_errors(monkeypatch):
    table, _, _ = draw(0, 20, 4, 0.5, 30)
    monkeypatch.setattr("elute.estimate.solve.harvest_errors._MOST_WORK", 10)
    found = fit(table, "all-pairs")
    assert np.isnan(found.propensity_log_se_).all()
    assert np.isnan(found.relevance_log_se_).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(WAYS))
def test_names_do_not_matter(seed, way):
    rng = np.random.default_rng(seed)
    table, _, _ = draw(seed, 20, 5, 0.5, 200)
    items, factors = rng.permutation(20), rng.permutation(5)
    plain = fit(table, *way)
    renamed = fit([(items[x], factors[t], n, c) for x, t, n, c in table], *way)
    assert renamed.propensity_[factors] == pytest.approx(plain.propensity_, rel=1e-3, nan_ok=True)
    assert renamed.relevance_values_[items] == pytest.approx(plain.relevance_values_, rel=1e-3, nan_ok=True)
    assert renamed.propensity_log_se_[factors] == pytest.approx(plain.propensity_log_se_, rel=1e-2, nan_ok=True)
    assert renamed.relevance_log_se_[items] == pytest.approx(plain.relevance_log_se_, rel=1e-2, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(WAYS), st.sampled_from([0, 1, 5]))
def test_sparse_logs_never_give_a_number_without_support(seed, way, mean):
    table, _, _ = draw(seed, 12, 6, 0.25, mean)
    found = fit(table, *way)
    o, clicks = found.propensity_, np.bincount([row[1] for row in table], [row[3] for row in table])
    assert ((o == 0) == (clicks == 0)).all()
    assert (np.isnan(o) | (o >= 0)).all()
    for component in np.unique(found.component_[clicks > 0]):
        inside = o[found.component_ == component]
        assert np.isnan(inside[inside != 0]).all() or (inside == 1).any()
    assert (np.isfinite(found.propensity_log_se_) <= (o > 0)).all()
    assert (np.isfinite(found.relevance_log_se_) <= (found.relevance_values_ > 0)).all()
    assert found.converged_ == (not found.reason_)
    assert found.converged_ or np.isnan(o).any()

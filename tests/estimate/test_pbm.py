"""The exact fit: against general optimisers and linear programmes, and where there is no maximum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from worlds import Merge, counts_of, draw

from elute.errors import EluteError
from elute.estimate.models.dla import DLA
from elute.estimate.models.em import RegressionEM
from elute.estimate.models.pbm import PBM
from elute.estimate.models.two_tower import TwoTower
from elute.estimate.solve.boundary import find_parts
from elute.estimate.solve.conditional import linearise
from elute.estimate.solve.problem import pose
from elute.estimate.solve.profile import fit_items
from reference.plain_pbm import comparable, highest_likelihood, log_likelihood

CASES = [(seed, mean) for seed in range(6) for mean in (0, 2, 30)]


@pytest.mark.parametrize(("seed", "mean"), CASES)
def test_scipy_finds_no_higher_likelihood(seed, mean):
    """Sparse ones too, where cells clicked every time press against p = 1, or there is no maximum, only a supremum."""
    table, _, _ = draw(seed, 12, 4, 0.5, mean)
    model = PBM(relevance_prior="none").fit(counts_of(table))
    best = max(highest_likelihood(table, start) for start in range(3))
    assert model.log_likelihood_ >= best - 1e-5
    assert model.log_likelihood_ <= best + 1e-3
    if model.converged_:
        assert log_likelihood(table, model.relevance_values_, model.propensity_) == pytest.approx(
            model.log_likelihood_, abs=1e-6
        )


def test_rounding_is_no_gradient():
    """By symmetry propensities are alike at every step; what rounding leaves of their gradient leads nowhere."""
    model = PBM(relevance_prior="none").fit(counts_of([(0, 0, 3, 0), (0, 1, 3, 3), (1, 0, 3, 3), (1, 1, 3, 0)]))
    assert model.reason_ == ""
    np.testing.assert_allclose(model.propensity_, 1)
    np.testing.assert_allclose(model.relevance_values_, 0.5, rtol=1e-4)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_parts_are_what_linear_programmes_say(data):
    items, factors = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 4))
    cells = [(x, t) for x in range(items) for t in range(factors)]
    clicks = data.draw(st.lists(st.sampled_from([-1, 0, 0, 1, 2]), min_size=len(cells), max_size=len(cells)))
    table = [(*cell, 2, c) for cell, c in zip(cells, clicks, strict=True) if c >= 0]
    assume({x for x, *_ in table} == set(range(items)))
    assume({t for _, t, _, c in table if c > 0} == set(range(factors)))
    clicked_items = {x for x, _, _, c in table if c > 0}
    problem = pose(counts_of(table), None)
    of_factor, of_item = find_parts(problem.cells, factors)
    for told, found in zip(find_parts(problem.cells, factors, problem.component), (of_factor, of_item), strict=True):
        np.testing.assert_array_equal(told, found)
    assert {x for x in range(items) if of_item[x] >= 0} == clicked_items
    informed = [row for row in table if row[0] in clicked_items]
    for s in range(factors):
        for t in range(s):
            assert (of_factor[s] == of_factor[t]) == comparable(informed, s, t)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_items_fit_given_propensities(data):
    """The root that brentq finds, whatever the counts: cells clicked every time, large and small beside each other."""
    cells = data.draw(st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1), st.floats(0.01, 1)), min_size=1))
    n = np.array([row[0] for row in cells])
    c = np.rint(n * [row[1] for row in cells]).astype(int)
    o = np.array([row[2] for row in cells])
    assume(c.sum() > 0)
    s = np.where(c < n, n - c, 1e-6)
    counts = counts_of([(0, t, n[t], c[t]) for t in range(len(n))])
    found = fit_items(counts.offsets, counts.factor, counts.impressions, counts.clicks, o, 1e-6)[0]

    def excess(log_r):
        p = np.exp(log_r) * o
        return np.log((s * p / (1 - p)).sum() / c.sum())

    top = -np.log(o.max())
    expected = brentq(excess, top - 40, top - 1e-15, xtol=1e-14)
    assert np.log(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_model_beats_it_on_a_mixed_log(seed):
    """As real logs are: items shown thousands of times, or once."""
    rng = np.random.default_rng(seed)
    o = 1 / np.arange(1, 9)
    table = []
    for item in range(300):
        r, size = rng.beta(1, 3), 10 ** rng.uniform(0, 4)
        for factor in rng.choice(8, rng.integers(1, 6), replace=False):
            n = int(1 + rng.poisson(size * rng.uniform(0, 1) ** 4))
            table.append((item, int(factor), n, int(rng.binomial(n, r * o[factor]))))
    counts = counts_of(table)
    model = PBM(relevance_prior="none").fit(counts)
    assert model.converged_
    for other in (TwoTower(), RegressionEM(max_iter=2_000), DLA()):
        assert model.log_likelihood_ >= other.fit(counts).log_likelihood_ - 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_newton_needs_few_steps(seed):
    assert PBM(relevance_prior="none").fit(counts_of(draw(seed, 60, 10, 0.5, 200)[0])).iterations_ <= 5
    assert PBM(relevance_prior="none").fit(counts_of(draw(seed, 300, 10, 0.5, 1)[0])).iterations_ <= 25


def test_weakly_connected_groups_converge():
    """Ten groups of factors, each joined to the next by one item."""
    table = []
    rng = np.random.default_rng(0)
    o = rng.uniform(0.2, 1, 100)
    for item in range(1_000):
        group = item % 10
        factors = rng.choice(10, 4, replace=False) + 10 * group
        if item < 9:
            factors[0] = 10 * group + 15
        r = 0.9 if item < 9 else rng.uniform(0.1, 0.9)
        table += [(item, int(t), 40, int(rng.binomial(40, r * o[t]))) for t in sorted(set(factors))]
    model = PBM(relevance_prior="none").fit(counts_of(table))
    assert model.converged_
    assert model.iterations_ <= 20
    far = np.abs(np.log(model.propensity_ / o) - np.log(model.propensity_ / o)[model.propensity_.argmax()])
    assert (far <= 5 * model.propensity_log_se_ + 1e-9).all()


def test_any_start_ends_in_the_same_place():
    counts = counts_of(draw(3, 80, 8, 0.4, 5)[0])
    expected = PBM(tolerance=1e-7, relevance_prior="none").fit(counts).propensity_
    for start in (1.0, 0.01, np.random.default_rng(0).uniform(0.01, 1, 8)):
        assert PBM(tolerance=1e-7, start=start, relevance_prior="none").fit(counts).propensity_ == pytest.approx(
            expected, rel=1e-5
        )
    with pytest.raises(EluteError, match="one for each of the 8 factors"):
        PBM(start=np.ones(3), relevance_prior="none").fit(counts)


def test_a_log_without_clicks():
    model = PBM(relevance_prior="none").fit(counts_of([(0, 0, 5, 0), (0, 1, 5, 0), (1, 1, 3, 0)]))
    assert model.propensity_.tolist() == [0, 0]
    assert model.relevance_values_.tolist() == [0, 0]
    assert np.isnan(model.propensity_log_se_).all()
    assert np.isnan(model.relevance_log_se_).all()
    assert (model.log_likelihood_, model.converged_) == (0, True)


def test_one_factor():
    model = PBM(relevance_prior="none").fit(counts_of([(0, 0, 10, 5), (1, 0, 10, 1)]))
    assert model.propensity_.tolist() == [1]
    assert model.propensity_log_se_.tolist() == [0]
    assert model.relevance_values_ == pytest.approx([0.5, 0.1])
    assert model.relevance_log_se_ == pytest.approx(np.sqrt([0.1, 0.9]))


def test_one_item():
    model = PBM(relevance_prior="none").fit(counts_of([(0, 0, 10, 8), (0, 1, 10, 2), (0, 2, 40, 0)]))
    assert model.propensity_ == pytest.approx([1, 0.25, 0])
    assert model.relevance_values_ == pytest.approx([0.8])
    variance = (1 / 0.8 + 1 / 0.2 - 2) / 10
    assert model.propensity_log_se_[:2] == pytest.approx([0, np.sqrt(variance)])
    assert np.isnan(model.propensity_log_se_[2])


def test_everything_clicked():
    model = PBM(relevance_prior="none").fit(counts_of([(0, 0, 5, 5), (0, 1, 5, 5), (1, 1, 3, 3), (1, 2, 1, 1)]))
    assert model.converged_
    assert model.propensity_ == pytest.approx([1, 1, 1], abs=1e-4)
    assert model.relevance_values_ == pytest.approx([1, 1], abs=1e-4)
    assert np.isfinite(model.propensity_log_se_).all()


@pytest.mark.parametrize("skips", [0, 1])
def test_huge_counts_next_to_certainty(skips):
    n = 10**12
    model = PBM(relevance_prior="none").fit(
        counts_of([(0, 0, n, n - skips), (0, 1, n, n // 2), (1, 0, n, n // 4), (1, 1, n, n // 8)])
    )
    assert model.converged_
    assert model.propensity_ == pytest.approx([1, 0.5], rel=1e-5)
    assert model.relevance_values_ == pytest.approx([1, 0.25], rel=1e-5)


def test_factors_beyond_the_clicks_are_named():
    """Item 0 ties 0 to 1; 2 is tied to them by unclicked impressions only, one way."""
    table = [(0, 0, 10, 5), (0, 1, 10, 4), (0, 2, 10, 0), (1, 2, 10, 3)]
    model = PBM(relevance_prior="none").fit(counts_of(table))
    assert not model.converged_
    assert "position 2" in model.reason_
    assert model.propensity_[:2] == pytest.approx([1, 0.8])
    assert np.isnan(model.propensity_[2])
    assert np.isnan(model.propensity_log_se_[2])
    assert np.isnan(model.relevance_values_[1])
    assert model.relevance_values_[0] == pytest.approx(0.5)
    assert model.log_likelihood_ == pytest.approx(highest_likelihood(table, 0), abs=1e-4)


def test_clicks_both_ways_make_it_finite():
    table = [(0, 0, 10, 5), (0, 1, 10, 4), (0, 2, 10, 0), (1, 2, 10, 3), (1, 0, 10, 0)]
    model = PBM(relevance_prior="none").fit(counts_of(table))
    assert model.converged_
    assert np.isfinite(model.propensity_).all()
    assert (model.propensity_ > 0).all()


def test_components_are_scaled_apart():
    table = [(0, 0, 10, 4), (0, 1, 10, 2), (1, 2, 10, 3), (1, 3, 10, 6)]
    model = PBM(relevance_prior="none").fit(counts_of(table), allow_unidentified=True)
    assert model.component_.tolist() == [0, 0, 1, 1]
    assert model.propensity_ == pytest.approx([1, 0.5, 0.5, 1])
    assert model.relevance_values_ == pytest.approx([0.4, 0.6])
    assert (model.propensity_log_se_ == 0).tolist() == [True, False, False, True]


def test_a_merge_joins_them():
    table = [(0, 0, 10, 4), (0, 1, 10, 2), (1, 2, 10, 3), (1, 3, 10, 6)]
    model = PBM(relevance_prior="none").fit(counts_of(table), plan=Merge((1, 2)))
    assert model.component_.tolist() == [0, 0, 0, 0]
    assert model.propensity_ == pytest.approx([1, 0.5, 0.5, 1])
    assert model.propensities_.column_names == ["position", "component", "propensity", "log_se"]
    assert model.propensities_.num_rows == 4


def test_stopping_early_is_said():
    model = PBM(max_iter=1, tolerance=1e-12, relevance_prior="none").fit(counts_of(draw(0, 60, 10, 0.5, 3)[0]))
    assert not model.converged_
    assert "stopped after 1 steps" in model.reason_


def test_a_step_beyond_what_numbers_hold_is_refused_not_divided_by():
    """All propensities of an item below the smallest number there is, or one above the largest."""
    cells = (np.array([0, 2]), np.array([0, 1], np.int32), np.array([5, 5]), np.array([1, 2]))
    for log_o in ([-800.0, -900.0], [800.0, 0.0]):
        room = np.empty(2), np.empty(2), np.empty(2)
        assert linearise(*cells, np.array(log_o), *room) == -np.inf
    assert np.isfinite(linearise(*cells, np.array([-700.0, -800.0]), *room))

"""The other models: each step against its definition, and what all estimators have in common."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import betabinom
from worlds import Merge, counts_of, draw

import elute
from elute.errors import EluteError
from elute.estimate.models.affine import Affine
from elute.estimate.models.ctr import CTR
from elute.estimate.models.dla import DLA
from elute.estimate.models.em import RegressionEM
from elute.estimate.models.em import _step as em_kernel
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.estimate.models.two_tower import TwoTower
from elute.estimate.solve.problem import pose
from reference.plain_pbm import em_step, log_likelihood, squared_error

LIKELIHOOD = [PBM, RegressionEM, TwoTower]
ALL = [*LIKELIHOOD, DLA, Naive, CTR, Affine]


@pytest.mark.parametrize("seed", range(4))
def test_likelihood_models_agree(seed):
    """Where no relevance presses against 1, they maximise one function: to 1e-6 for each impression."""
    table, _, _ = draw(seed, 50, 8, 0.5, 200, relevance=(0.1, 0.7))
    counts = counts_of(table)
    fits = [model().fit(counts) for model in LIKELIHOOD]
    assert all(fit.converged_ for fit in fits)
    reached = [fit.log_likelihood_ / counts.impressions.sum() for fit in fits]
    assert np.ptp(reached) < 1e-6
    assert max(reached) == pytest.approx(reached[0], abs=1e-10)
    for fit in fits:
        assert fit.propensity_ == pytest.approx(fits[0].propensity_, rel=1e-3)


@pytest.mark.parametrize("mean", [0, 3, 100])
def test_em_never_decreases_the_likelihood(mean):
    table, _, _ = draw(5, 40, 6, 0.4, mean)
    counts = counts_of(table)
    reached = [RegressionEM(max_iter=k, tolerance=0).fit(counts).log_likelihood_ for k in (*range(1, 20), 50, 200)]
    assert (np.diff(reached) >= -1e-9).all()


def test_em_step_is_the_papers():
    table, _, _ = draw(2, 9, 4, 0.6, 3)
    rng = np.random.default_rng(0)
    o, r = rng.random(4), rng.random(9)
    r, o = em_step(table, r, o)
    model = RegressionEM(max_iter=1).fit(counts_of(table))
    assert model.propensity_ == pytest.approx(o / o.max())
    assert model.relevance_values_ == pytest.approx(r * o.max())


def test_dla_steps_minimise_the_squared_error():
    table, _, _ = draw(4, 9, 4, 0.6, 5)
    o = np.random.default_rng(0).random(4)
    r = np.zeros(9)

    def best(values, at):
        def loss(value):
            trial = values.copy()
            trial[at] = value
            return squared_error(table, *((trial, o) if values is r else (r, trial)))

        return minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).x

    r[:] = [best(r, item) for item in range(9)]
    o[:] = [best(o, factor) for factor in range(4)]
    model = DLA(max_iter=1).fit(counts_of(table))
    assert model.propensity_ == pytest.approx(o / o.max(), abs=1e-6)
    assert model.relevance_values_ == pytest.approx(r * o.max(), abs=1e-6)


def test_dla_ends_at_a_minimum():
    table, _, _ = draw(6, 15, 4, 0.7, 50)
    model = DLA(tolerance=1e-10).fit(counts_of(table))
    r, o = model.relevance_values_, model.propensity_
    start = np.concatenate((r, o)) * np.random.default_rng(0).uniform(0.7, 1.3, 19)
    found = minimize(lambda x: squared_error(table, x[:15], x[15:]), start, method="L-BFGS-B", bounds=[(0, 1)] * 19)
    assert squared_error(table, r, o) <= found.fun + 1e-6


@pytest.mark.parametrize("model", [DLA, RegressionEM])
def test_public_variants_differ_and_recover_noise_free_clicks(model):
    table, r, o = draw(8, 40, 5, 0.6, 10)
    exact = [(x, t, 10**6, round(10**6 * r[x] * o[t])) for x, t, _, _ in table]
    for variant in ("paper", "public"):
        fit = model(variant=variant, start=0.9).fit(counts_of(exact))
        assert fit.propensity_ == pytest.approx(o, rel=1e-3)
    noisy = counts_of(table)
    assert not np.allclose(
        model(variant="paper").fit(noisy).propensity_, model(variant="public").fit(noisy).propensity_, rtol=1e-3
    )
    with pytest.raises(EluteError, match="paper, public"):
        model(variant="mine").fit(noisy)


def test_an_unidentified_log_depends_on_the_start():
    table = [(0, 0, 1000, 400), (0, 1, 1000, 200), (1, 2, 1000, 300), (1, 3, 1000, 600)]
    found = [DLA(seed=seed).fit(counts_of(table), allow_unidentified=True) for seed in (0, 1, 1)]
    ratio = [fit.solution_.relevance[0] / fit.solution_.relevance[1] for fit in found]
    assert ratio[1] == ratio[2]
    assert abs(ratio[0] - ratio[1]) > 0.01
    assert found[0].relevance_values_ == pytest.approx(found[1].relevance_values_, abs=1e-4)
    joined = [DLA(seed=seed).fit(counts_of(table), plan=Merge((1, 2))).propensity_ for seed in (0, 1)]
    assert joined[0] == pytest.approx(joined[1], abs=1e-4)
    assert joined[0][1] == joined[0][2]


def test_two_towers_leave_a_flat_corner():
    """From nearly 1 a sigmoid passes no gradient."""
    table, _, _ = draw(3, 40, 6, 0.5, 500, relevance=(0.1, 0.6))
    counts = counts_of(table)
    fit = TwoTower(start=np.array([0.2, 1, 0.2, 1, 0.2, 1])).fit(counts)
    assert fit.converged_
    assert fit.log_likelihood_ == pytest.approx(PBM(relevance_prior="none").fit(counts).log_likelihood_, abs=1e-2)


def test_em_leaves_a_start_of_one():
    table, _, _ = draw(3, 40, 6, 0.5, 500, relevance=(0.1, 0.6))
    fit = RegressionEM(start=1.0).fit(counts_of(table))
    assert fit.log_likelihood_ == pytest.approx(
        PBM(relevance_prior="none").fit(counts_of(table)).log_likelihood_, abs=1e-2
    )


def test_two_tower_gradient():
    from elute.estimate.models.two_tower import _loss

    counts = counts_of(draw(9, 7, 3, 0.7, 4)[0])
    cells = counts.offsets, counts.factor, counts.impressions, counts.clicks
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=7), rng.normal(size=3)
    _, of_items, of_factors = _loss(*cells, a, b)
    for k in range(7):
        step = np.eye(7)[k] * 1e-5
        assert (_loss(*cells, a + step, b)[0] - _loss(*cells, a - step, b)[0]) / 2e-5 == pytest.approx(of_items[k])
    for k in range(3):
        step = np.eye(3)[k] * 1e-5
        assert (_loss(*cells, a, b + step)[0] - _loss(*cells, a, b - step)[0]) / 2e-5 == pytest.approx(of_factors[k])


def test_naive_is_the_click_rate():
    model = Naive().fit(counts_of([(0, 0, 10, 5), (0, 1, 10, 1), (1, 1, 8, 0)]))
    assert model.relevance_values_.tolist() == [0.3, 0]
    assert model.propensity_.tolist() == [1, 1]
    assert model.propensity_log_se_.tolist() == [0, 0]
    assert model.relevance_log_se_[0] == pytest.approx(np.sqrt(0.7 / 6))
    assert np.isnan(model.relevance_log_se_[1])


def test_ctr_prior_is_the_most_likely_one():
    rng = np.random.default_rng(2)
    n = 1 + rng.poisson(10, 400)
    c = rng.binomial(n, rng.beta(2, 6, 400))
    model = CTR().fit(counts_of([(x, 0, *row) for x, row in enumerate(zip(n.tolist(), c.tolist(), strict=True))]))
    assert model.converged_
    reached = betabinom.logpmf(c, n, *model.prior_).sum()
    for factor in (0.9, 1.1):
        assert betabinom.logpmf(c, n, model.prior_[0] * factor, model.prior_[1]).sum() < reached
        assert betabinom.logpmf(c, n, model.prior_[0], model.prior_[1] * factor).sum() < reached
    assert model.relevance_values_ == pytest.approx((c + model.prior_[0]) / (n + sum(model.prior_)))
    draws = np.log(rng.beta(c[0] + model.prior_[0], n[0] - c[0] + model.prior_[1], 200_000))
    assert model.relevance_log_se_[0] == pytest.approx(draws.std(), rel=0.02)


@pytest.mark.parametrize("clicks", [0, 5, 20])
def test_ctr_of_items_that_do_not_differ(clicks):
    model = CTR().fit(counts_of([(item, 0, 20, clicks) for item in range(30)]))
    assert model.relevance_values_ == pytest.approx([clicks / 20] * 30, abs=1e-3)


@pytest.mark.parametrize("model", ALL)
def test_names_do_not_matter(model):
    """Relabelling items and factors permutes the result; random starts are drawn by factor, so they are fixed."""
    table, _, _ = draw(10, 30, 5, 0.5, 60, relevance=(0.1, 0.7))
    rng = np.random.default_rng(0)
    items, factors = rng.permutation(30), rng.permutation(5)
    plain = model(start=0.5).fit(counts_of(table))
    renamed = model(start=0.5).fit(counts_of([(items[x], factors[t], n, c) for x, t, n, c in table]))
    assert renamed.propensity_[factors] == pytest.approx(plain.propensity_, rel=1e-3)
    assert renamed.relevance_values_[items] == pytest.approx(plain.relevance_values_, rel=1e-3)
    assert renamed.relevance_log_se_[items] == pytest.approx(plain.relevance_log_se_, rel=1e-2)


@pytest.mark.parametrize("model", ALL)
def test_scale_tables_and_reports(model):
    table = {
        "query_id": ["q", "q", "q", "p", "p", "p"] * 4,
        "doc_id": ["a", "b", "a", "c", "c", "c"] * 4,
        "position": [1, 1, 2, 1, 2, 3] * 4,
        "click": [1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0] * 2,
    }
    steps = []
    with elute.read_log(pa.table(table)) as log:
        fit = model(progress=lambda *step: steps.append(step)).fit(log)
        items = fit.relevance_
    assert fit.propensities_.column_names[:4] == ["position", "component", "propensity", "log_se"]
    posterior = [] if model is Affine else ["shape", "rate", "evidence"]
    assert items.column_names == [
        "query_id", "doc_id", "component", "relevance", "log_se", "impressions", "clicks", *posterior
    ]  # fmt: skip
    assert all((items[name].to_numpy() > 0).all() for name in posterior)
    assert max(fit.propensities_["propensity"].to_pylist()) == 1
    assert items["clicks"].to_pylist() == [8, 0, 6]
    assert items["impressions"].to_pylist() == [8, 4, 12]
    assert fit.iterations_ >= 1
    assert fit.seconds_ > 0
    assert fit.converged_ == (not fit.reason_)
    assert fit.log_likelihood_ <= 0
    assert any(stage == "fitting" for stage, _, _ in steps) or model is Naive


@pytest.mark.parametrize("model", LIKELIHOOD)
def test_the_reported_likelihood_is_that_of_the_estimates(model):
    table, _, _ = draw(12, 30, 5, 0.5, 60)
    fit = model().fit(counts_of(table))
    assert log_likelihood(table, fit.relevance_values_, fit.propensity_) == pytest.approx(fit.log_likelihood_)


@pytest.mark.parametrize("model", [RegressionEM, DLA, TwoTower])
def test_stopping_early_is_said(model):
    fit = model(max_iter=3).fit(counts_of(draw(0, 60, 10, 0.5, 30)[0]))
    assert not fit.converged_
    assert "stopped after 3 iterations" in fit.reason_


def test_a_swap_plan_is_refused():
    class Swap(Merge):
        method = "swap"

    with pytest.raises(EluteError, match="merge plan"):
        PBM(relevance_prior="none").fit(counts_of([(0, 0, 5, 2), (0, 1, 5, 2)]), plan=Swap((0, 1)))


@pytest.mark.parametrize("swapped", [False, True])
def test_em_never_steps_past_1(swapped):
    """s/(1-o)·(1-o) may round above s. A value of 1 and a digit, times another near 1, once made 1-o·r negative and the
    next propensity too."""
    rng = np.random.default_rng(0)
    n = 2_000
    table = [(k, k, int(shown), int(rng.integers(1, shown))) for k, shown in enumerate(rng.integers(2, 10**6, n))]
    problem = pose(counts_of(table), None)
    ones, between = np.ones(n), rng.random(n)
    o, r = (ones, between) if swapped else (between, ones)
    shown = problem.cells.impressions.astype(np.float64)
    for values in em_kernel(*problem.cells, shown, o, r):
        assert values.max() <= 1
        assert values.min() >= 0

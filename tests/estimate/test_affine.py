"""Trust bias: likelihood, gauge and errors against plain dense versions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from worlds import Merge, counts_of

from elute.estimate.models.affine import Affine, _profile_loss
from elute.estimate.models.pbm import PBM

ALPHA = np.array([0.6, 0.5, 0.4, 0.3, 0.2])
BETA = np.array([0.2, 0.15, 0.1, 0.05, 0.0])


def world(seed, items=80, mean=3_000):
    rng = np.random.default_rng(seed)
    r = rng.uniform(0, 1, items)
    item, factor = np.nonzero(rng.random((items, 5)) < 0.7)
    item = np.unique(item, return_inverse=True)[1]
    n = 1 + rng.poisson(mean, len(item))
    c = rng.binomial(n, ALPHA[factor] * r[item] + BETA[factor])
    return np.stack((item, factor, n, c), axis=1), r[: item.max() + 1]


def loss(table, r, high, low):
    item, factor, n, c = table.T
    p = low[factor] + (high - low)[factor] * r[item]
    return -(c @ np.log(p) + (n - c) @ np.log1p(-p))


def test_profile_and_gradient():
    table, _ = world(0, 20, 15)
    counts = counts_of(table)
    cells = counts.offsets, counts.factor, counts.impressions, counts.clicks
    rng = np.random.default_rng(1)
    high, low = rng.uniform(0.4, 0.9, 5), rng.uniform(0.05, 0.3, 5)
    r = np.full(counts.n_items, 0.5)
    value, of_high, of_low = _profile_loss(*cells, high, low, r)
    best = minimize(lambda x: loss(table, x, high, low), r, bounds=[(0, 1)] * len(r), method="L-BFGS-B", tol=1e-14)
    assert value == pytest.approx(best.fun, rel=1e-9)
    assert ((r == 0) | (r == 1)).any()

    def profiled(x):
        return _profile_loss(*cells, x[:5], x[5:], r.copy())[0]

    slope = approx_fprime(np.concatenate((high, low)), profiled, 1e-7)
    assert np.concatenate((of_high, of_low)) == pytest.approx(slope, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("mean", [2, 50])
def test_scipy_finds_no_higher_likelihood(mean):
    table, _ = world(3, 15, mean)
    model = Affine(tolerance=1e-6).fit(counts_of(table))
    items = int(table[:, 0].max()) + 1
    rng = np.random.default_rng(0)
    for _ in range(5):
        start = np.concatenate((rng.random(items), rng.uniform(0.4, 0.9, 5), rng.uniform(0.01, 0.3, 5)))
        found = minimize(
            lambda x: loss(table, x[:items], x[items : items + 5], x[items : items + 5] * x[items + 5 :]),
            start,
            bounds=[(0, 1)] * items + [(1e-9, 1 - 1e-9)] * 10,
            method="L-BFGS-B",
            options={"maxfun": 10**6, "maxiter": 10**4},
        )
        assert model.log_likelihood_ >= -found.fun - 1e-6


def test_truth_is_found_at_the_documented_gauge():
    table, r = world(1)
    model = Affine().fit(counts_of(table))
    assert model.converged_
    assert model.propensity_.max() == 1
    assert model.offset_.min() == 0
    assert model.propensity_ == pytest.approx(ALPHA / 0.6, abs=0.03)
    assert model.offset_ == pytest.approx(BETA, abs=0.02)
    assert np.corrcoef(model.relevance_values_, r)[0, 1] > 0.995
    assert model.propensities_.column_names == ["position", "component", "propensity", "log_se", "offset"]
    item, factor, n, c = table.T
    p = model.propensity_[factor] * model.relevance_values_[item] + model.offset_[factor]
    assert c @ np.log(p) + (n - c) @ np.log1p(-p) == pytest.approx(model.log_likelihood_)
    assert model.log_likelihood_ > PBM(relevance_prior="none").fit(counts_of(table)).log_likelihood_ + 100


def test_errors_are_those_of_the_whole_information_matrix():
    table, _ = world(2, 40)
    model = Affine(tolerance=1e-6).fit(counts_of(table))
    alpha, beta, r = model.propensity_, model.offset_, model.relevance_values_
    items = len(r)
    information = np.zeros((items + 10, items + 10))
    for item, factor, n, _ in table:
        p = alpha[factor] * r[item] + beta[factor]
        row = np.zeros(items + 10)
        row[item], row[items + factor], row[items + 5 + factor] = alpha[factor], r[item], 1
        information += n / (p * (1 - p)) * np.outer(row, row)
    known = [items + int(alpha.argmax()), items + 5 + int((beta / alpha).argmin())]
    keep = ~np.isin(np.arange(items + 10), known)
    error = np.zeros(items + 10)
    error[keep] = np.sqrt(np.diag(np.linalg.inv(information[keep][:, keep])))
    assert model.propensity_log_se_ == pytest.approx(error[items : items + 5] / alpha, rel=1e-5)
    assert model.relevance_log_se_ == pytest.approx(error[:items] / r, rel=1e-5)


def test_a_graph_too_thin_has_no_errors():
    """One item a link is enough for r·o, not for this model."""
    table = [(0, 0, 900, 400), (0, 1, 900, 300), (1, 1, 900, 200), (1, 2, 900, 150)]
    assert np.isfinite(PBM(relevance_prior="none").fit(counts_of(table)).propensity_log_se_).all()
    errors = Affine().fit(counts_of(table)).propensity_log_se_
    assert np.isnan(errors).sum() == 2


def test_a_merge_ties_both():
    table, _ = world(4)
    model = Affine().fit(counts_of(table), plan=Merge((1, 2)))
    assert model.propensity_[1] == model.propensity_[2]
    assert model.offset_[1] == model.offset_[2]

"""Standard errors: against the whole Fisher information, and against what repetition shows."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import counts_of, draw

from elute.estimate.models.pbm import PBM
from elute.estimate.solve import standard_errors as precision
from reference.plain_pbm import standard_errors


@pytest.mark.parametrize("seed", range(5))
def test_errors_are_those_of_the_whole_information_matrix(seed):
    table, _, _ = draw(seed, 30, 6, 0.4, 60)
    model = PBM(tolerance=1e-8, relevance_prior="none").fit(counts_of(table))
    of_items, of_factors = standard_errors(
        table, model.relevance_values_, model.propensity_, int(model.propensity_.argmax())
    )
    assert model.propensity_log_se_ == pytest.approx(of_factors, rel=1e-6)
    assert model.relevance_log_se_ == pytest.approx(of_items, rel=1e-6)


def test_sampled_errors_are_near_the_exact_ones(monkeypatch):
    counts = counts_of(draw(1, 300, 40, 0.15, 30)[0])
    exact, sampled = PBM(relevance_prior="none").fit(counts), PBM(relevance_prior="none").fit(counts)
    assert exact.propensity_log_se_.max() > 0
    monkeypatch.setattr(precision, "DENSE", 0)
    ratio = (
        sampled.propensity_log_se_[exact.propensity_log_se_ > 0]
        / exact.propensity_log_se_[exact.propensity_log_se_ > 0]
    )
    assert (np.abs(ratio - 1) < 0.2).all()
    assert np.abs(ratio - 1).mean() < 0.08
    assert (sampled.propensity_log_se_ == 0).sum() == 1
    assert sampled.relevance_log_se_ == pytest.approx(exact.relevance_log_se_, rel=0.2)


def test_intervals_cover_the_truth():
    """300 draws of clicks for one design; the reference is the factor of largest true propensity."""
    table, r, o = draw(7, 60, 8, 0.5, 150)
    item, factor, n, _ = np.array(table).T
    covered_factors, covered_items = [], []
    rng = np.random.default_rng(11)
    for _ in range(300):
        c = rng.binomial(n, r[item] * o[factor])
        model = PBM(relevance_prior="none").fit(counts_of(np.stack((item, factor, n, c), axis=1)))
        assert model.converged_
        assert model.propensity_.argmax() == 0
        covered_factors.append(np.abs(np.log(model.propensity_ / o)) <= 1.96 * model.propensity_log_se_)
        covered_items.append(np.abs(np.log(model.relevance_values_ / r)) <= 1.96 * model.relevance_log_se_)
    share = np.array(covered_factors)[:, 1:].mean(axis=0)
    assert ((share > 0.91) & (share < 0.985)).all()
    assert 0.94 < np.array(covered_items).mean() < 0.96

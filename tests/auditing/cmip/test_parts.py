"""The estimators' parts against loops over pairs, scikit-learn and scipy; the test against real permutations."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logit, ndtri

from elute.auditing.cmip import cmip, independence
from elute.auditing.cmip.copula import copula
from elute.auditing.cmip.dv import _calibrate, bound
from elute.auditing.cmip.knn import _log_mass, estimate_discrete
from elute.auditing.cmip.ksg import K, ksg, neighbour_distance
from elute.auditing.cmip.strata import Stratum
from elute.errors import EluteError
from reference.plain_information import gaussian_pair, kraskov, of_correlation, plug_in, square_pair


def stratum(x, y):
    first, second = (stats.rankdata(values, "ordinal") - 1 for values in (x, y))
    return Stratum(0.0, first, second, first, second, np.arange(len(first)))


def independent(n, rng):
    return Stratum(0.0, rng.permutation(n), rng.permutation(n), np.arange(n), np.arange(n), np.arange(n))


def test_ksg_is_the_plain_one_and_scikit_learns():
    features = pytest.importorskip("sklearn.feature_selection")
    for rho in (0.0, 0.8):
        s = stratum(*gaussian_pair(300, rho, np.random.default_rng(0))[:2])
        u, v = (ndtri((rank + 0.5) / 300) for rank in (s.x, s.y))
        found = ksg(s).log_ratio.mean()
        assert found == pytest.approx(kraskov(u, v, K), rel=1e-9)
        theirs = features.mutual_info_regression(u[:, None], v, n_neighbors=K, random_state=0)[0]
        # It adds noise of 1e-10, which decides ties of distances in a symmetric grid.
        assert max(found, 0) == pytest.approx(theirs, abs=1e-3)


def test_the_copula_is_its_formula():
    x, y, _ = gaussian_pair(400, 0.6, np.random.default_rng(0))
    scores = [stats.norm.ppf((stats.rankdata(values) - 0.5) / 400) for values in (x, y)]
    r = stats.pearsonr(*scores).statistic
    found = copula(stratum(x, y)).log_ratio
    assert found.mean() == pytest.approx(of_correlation(r) - 0.5 / 399, rel=1e-9)
    assert found.var() == pytest.approx(r**2, rel=0.1)  # the variance of a Gaussian pair's log ratio


def test_neighbours_are_those_of_all_pairs():
    points = np.random.default_rng(0).standard_normal((200, 2))
    apart = np.sort(np.abs(points[:, None] - points).max(2), axis=1)
    np.testing.assert_array_equal(neighbour_distance(points, 4), apart[:, 4])


@given(st.floats(-6, 6), st.floats(0.001, 3))
def test_the_normal_share_of_an_interval(centre, radius):
    share = stats.norm.cdf(-abs(centre) + radius) - stats.norm.cdf(-abs(centre) - radius)
    assert _log_mass(np.array([centre]), np.array([radius]))[0] == pytest.approx(np.log(share), rel=1e-9, abs=1e-9)


def test_the_normal_share_far_out_keeps_its_digits():
    # φ(x) / x · (1 - 1/x² …) at the near end rules: ln of it at 50.
    near = 49.0
    tail = -(near**2) / 2 - np.log(near * np.sqrt(2 * np.pi)) + np.log1p(-1 / near**2 + 3 / near**4)
    assert _log_mass(np.array([50.0]), np.array([1.0]))[0] == pytest.approx(tail, rel=1e-9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=60))
def test_counts_are_the_plain_ones(pairs):
    x, y = np.array(pairs).T
    assert estimate_discrete(x, y).log_ratio.mean() == pytest.approx(plug_in(x, y), abs=1e-12)


def test_random_tables_are_those_of_permutations():
    rng = np.random.default_rng(0)
    s = independent(90, rng)
    basis, classes = independence.weigh_classes(), independence.CLASSES
    permuted = []
    for _ in range(2_000):
        table = np.zeros((classes, classes))
        np.add.at(table, (s.x * classes // 90, rng.permutation(s.y) * classes // 90), 1.0)
        permuted.append(independence._statistic(table[None], basis)[0])
    rows, columns = (np.bincount(rank * classes // 90, minlength=classes) for rank in (s.x, s.y))
    drawn = independence._statistic(stats.random_table.rvs(rows, columns, size=2_000, random_state=rng), basis)
    assert stats.ks_2samp(permuted, drawn).pvalue > 0.001


def test_the_first_term_is_spearmans():
    rng = np.random.default_rng(1)
    x, y, _ = gaussian_pair(4_000, 0.6, rng)
    s, classes = stratum(x, y), independence.CLASSES
    table = np.zeros((classes, classes))
    np.add.at(table, (s.x * classes // s.n, s.y * classes // s.n), 1.0)
    first = independence.weigh_classes()[:, :1]
    spearman = stats.spearmanr(x, y).statistic
    assert independence._statistic(table[None], first)[0] == pytest.approx(s.n * spearman**2 / 4, rel=0.02)


def test_one_independent_case_in_twenty_is_rejected():
    rng = np.random.default_rng(2)
    p = [independence.p_value([independent(n, rng) for n in (40, 150, 300)], 99, rng) for _ in range(1_500)]
    assert 0.03 <= np.mean(np.array(p) <= 0.05) <= 0.07
    assert stats.kstest(np.array(p) - rng.random(1_500) / 100, "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("pair", "n"),
    [(lambda n, rng: gaussian_pair(n, 0.1, rng), 2_000), (lambda n, rng: square_pair(n, 2.0, rng), 400)],
    ids=["monotone", "square"],
)
def test_dependence_is_found(pair, n):
    rng = np.random.default_rng(3)
    p = [independence.p_value([stratum(*pair(n, rng)[:2])], 199, rng) for _ in range(50)]
    assert np.mean(np.array(p) <= 0.05) >= 0.9


def test_the_bound_is_the_information_when_the_odds_are_true():
    rng = np.random.default_rng(0)
    x, y, p = gaussian_pair(100_000, 0.6, rng)
    other = rng.permutation(y)
    q = stats.norm.logpdf(x, 0.6 * other, 0.8) - stats.norm.logpdf(x)
    assert bound(p, q) == pytest.approx(of_correlation(0.6), abs=0.01)
    assert bound(p + 3, q + 3) == pytest.approx(bound(p, q))


def test_calibration_finds_the_true_odds():
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0.3, 1.5, 100_000)
    label = rng.random(100_000) < 1 / (1 + np.exp(-(0.5 + 0.4 * log_odds)))
    intercept, slope = _calibrate(log_odds[label], log_odds[~label])
    assert (intercept, slope) == pytest.approx((0.5, 0.4), abs=0.03)
    assert _calibrate(np.array([-1.0, 0.0, 0.5]), np.array([1.0, 0.0, -0.5])) == (0.0, 0.0)


def test_the_papers_estimator():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 2, 2_000)
    x, y, _ = gaussian_pair(2_000, 0.9, rng)
    found = cmip(x + grade, y + grade, grade, "dv", permutations=19)
    assert 0.5 < found.estimate < of_correlation(0.9)
    assert found.estimator == "dv"
    assert np.isnan([found.low, found.high]).all()
    assert (found.to_dict()["low"], found.notes[-1][:30]) == (None, "the estimator dv is a lower bo")
    assert cmip(x + grade, y + grade, grade, "dv", permutations=19) == found
    assert abs(cmip(rng.random(2_000), y, grade, "dv", permutations=19).estimate) < 0.02


def test_without_lightgbm_the_next_step_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(EluteError, match=r'pip install "elute\[trees\]"'):
        cmip(np.arange(50.0), np.arange(50.0), np.zeros(50), "dv")


def test_clipping_is_the_papers():
    from elute.auditing.cmip.dv import CLIP

    assert pytest.approx(logit(0.99)) == CLIP

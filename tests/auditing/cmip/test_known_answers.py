"""CMIP against truths known in closed form or by quadrature.

Any estimator's error is at least sd(log ratio) / √n: at 6,000 documents and rho = 0.9 that is 0.0116. So at 6,000 an
estimate is compared with the mean log ratio of the very sample, which has that part of the error too.
"""

from __future__ import annotations

import numpy as np
import pytest

from elute.auditing.cmip import cmip
from reference.plain_information import gaussian_pair, of_correlation, of_square, square_pair

CORRELATIONS = [0, 0.1, 0.3, 0.5, 0.7, 0.9]


def graded(pair, n, seed):
    """A pair within each of five grades, and moved by the grade: without grades they would look dependent."""
    rng = np.random.default_rng(seed)
    x, y, log_ratio = pair(n, rng)
    grade = rng.integers(0, 5, n)
    return x + grade, y + grade, grade, log_ratio.mean()


def test_quadrature_agrees_with_the_mean_log_ratio():
    ratio = square_pair(200_000, 1.0, np.random.default_rng(0))[2]
    assert of_square(1.0) == pytest.approx(ratio.mean(), abs=4 * ratio.std() / np.sqrt(200_000))
    ratio = gaussian_pair(200_000, 0.7, np.random.default_rng(0))[2]
    assert of_correlation(0.7) == pytest.approx(ratio.mean(), abs=4 * ratio.std() / np.sqrt(200_000))


@pytest.mark.parametrize("rho", CORRELATIONS)
def test_gaussian_within_grades(rho):
    def pair(n, rng):
        return gaussian_pair(n, rho, rng)

    x, y, grade, of_sample = graded(pair, 60_000, 0)
    found = cmip(x, y, grade)
    assert found.estimate == pytest.approx(of_correlation(rho), abs=0.01)
    assert found.p_value == 0.001 or rho == 0
    assert cmip(x, y, grade, "ksg", permutations=1).estimate == pytest.approx(of_sample, abs=0.02)
    assert cmip(x, y, grade, "copula", permutations=1).estimate == pytest.approx(of_sample, abs=0.005)
    for seed in range(5):
        x, y, grade, of_sample = graded(pair, 6_000, seed)
        assert cmip(x, y, grade, permutations=1).estimate == pytest.approx(of_sample, abs=0.02)


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_dependence_that_is_not_monotone(noise):
    def pair(n, rng):
        return square_pair(n, noise, rng)

    truth = of_square(noise)
    x, y, grade, _ = graded(pair, 60_000, 1)
    found = cmip(x, y, grade)
    assert found.estimate == pytest.approx(truth, abs=0.01)
    assert found.p_value == 0.001
    assert cmip(x, y, grade, "ksg", permutations=1).estimate == pytest.approx(truth, abs=0.01)
    assert cmip(x, y, grade, "copula", permutations=1).estimate == pytest.approx(0, abs=0.001)
    for seed in range(5):
        x, y, grade, of_sample = graded(pair, 6_000, seed)
        assert cmip(x, y, grade, permutations=1).estimate == pytest.approx(of_sample, abs=0.02)


def test_ignoring_grades_would_show_dependence():
    x, y, grade, _ = graded(lambda n, rng: gaussian_pair(n, 0.0, rng), 6_000, 0)
    assert cmip(x, y, np.zeros(6_000)).estimate > 0.2
    assert cmip(x, y, grade).estimate < 0.02


@pytest.mark.parametrize(
    ("estimator", "rho"),  # plain nearest neighbours are biased where dependence is strong, so not (ksg, 0.9)
    [("knn", 0.0), ("knn", 0.5), ("knn", 0.9), ("ksg", 0.0), ("ksg", 0.5), ("copula", 0.5), ("copula", 0.9)],
)
def test_intervals_hold_the_truth_nineteen_times_in_twenty(estimator, rho):
    rng = np.random.default_rng(7)
    held = 0
    for seed in range(200):
        x, y, _ = gaussian_pair(1_500, rho, rng)
        found = cmip(x, y, rng.integers(0, 2, 1_500), estimator, seed=seed, permutations=1)
        held += found.low <= of_correlation(rho) <= found.high
    assert held >= 180  # 190 expected; fewer than 180 has a chance below 0.002


def test_a_policy_of_few_distinct_scores():
    # Y in ten levels, X continuous: I = h(X) - h(X | Y), a mixture's entropy by quadrature.
    rng = np.random.default_rng(3)
    y = rng.integers(0, 10, 60_000)
    x = y + 2 * rng.standard_normal(60_000)
    grid = np.linspace(-12, 21, 6_001)
    density = np.mean([np.exp(-(((grid - level) / 2) ** 2) / 2) / np.sqrt(8 * np.pi) for level in range(10)], axis=0)
    truth = -np.trapezoid(density * np.log(density), grid) - 0.5 * np.log(2 * np.pi * np.e * 4)
    assert cmip(x, y, rng.integers(0, 5, 60_000), permutations=1).estimate == pytest.approx(truth, abs=0.01)


def test_two_scores_of_few_levels():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 10, 20_000)
    x = np.where(rng.random(20_000) < 0.5, y, rng.integers(0, 10, 20_000))
    truth = np.log(10) + 0.55 * np.log(0.55) + 0.45 * np.log(0.05)
    assert cmip(x, y, np.zeros(20_000), permutations=1).estimate == pytest.approx(truth, abs=0.01)
    assert cmip(y, y, np.zeros(20_000), permutations=1).estimate == pytest.approx(np.log(10), abs=0.001)

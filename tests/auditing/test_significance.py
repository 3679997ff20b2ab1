"""The randomisation test against every swap tried and scipy's; Welch's test against its formula and its size."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from elute.auditing.significance import fisher_randomisation, welch
from elute.errors import EluteError


def test_few_queries_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.random(9).round(1), rng.random(9).round(1)
    d = a - b
    as_large = [abs(np.dot(signs, d)) >= abs(d.sum()) - 1e-9 for signs in product([1, -1], repeat=9)]
    assert fisher_randomisation(a, b) == pytest.approx((d.mean(), np.mean(as_large)))


def test_many_queries_agree_with_scipy():
    rng = np.random.default_rng(1)
    a = rng.random(60)
    b = a + rng.normal(0.03, 0.1, 60)
    theirs = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=9_999, rng=2
    ).pvalue
    assert fisher_randomisation(a, b).p_value == pytest.approx(theirs, abs=4 * np.sqrt(theirs / 9_999))
    assert fisher_randomisation(a, b) == fisher_randomisation(a, b)
    assert fisher_randomisation(a, b, seed=1) != fisher_randomisation(a, b)


def test_queries_that_do_not_count_are_left_out():
    a, b = np.array([1.0, np.nan, 0.0, 1.0]), np.array([0.0, 1.0, 0.5, 1.0])
    assert fisher_randomisation(a, b) == fisher_randomisation(a[[0, 2, 3]], b[[0, 2, 3]])


def test_the_randomisation_test_keeps_its_size():
    rng = np.random.default_rng(3)
    p = np.array(
        [fisher_randomisation(*rng.exponential(size=(2, 40)), permutations=199, seed=i).p_value for i in range(1_000)]
    )
    assert abs(np.mean(p <= 0.05) - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 1_000)


def test_welch_is_its_formula():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 20), rng.normal(0.5, 3, 35)
    va, vb = a.var(ddof=1) / 20, b.var(ddof=1) / 35
    freedom = (va + vb) ** 2 / (va**2 / 19 + vb**2 / 34)
    p = 2 * stats.t.sf(abs(a.mean() - b.mean()) / np.sqrt(va + vb), freedom)
    assert welch(a, b) == pytest.approx((a.mean() - b.mean(), p))
    assert welch(a, b, comparisons=2).p_value == pytest.approx(min(1, 2 * p))
    assert welch(a, b, comparisons=10**6).p_value == 1


def test_welch_of_constants():
    assert welch([1, 1], [1, 1, 1]).p_value == 1
    assert welch([2, 2], [1, 1, 1]) == (1, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fisher_randomisation([1, 2], [1]), "one value for each query"),
        (lambda: fisher_randomisation([np.nan], [1]), "no query has a value"),
        (lambda: welch([1], [1, 2]), "at least two"),
    ],
)
def test_what_cannot_be_tested_is_named(call, message):
    with pytest.raises(EluteError, match=message):
        call()

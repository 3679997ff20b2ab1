"""Limits fail as seldom as they say: tails enumerated, not drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, poisson, t

from elute.bounds.limits import find_quantile, limit_clicks, limit_unclicked, widen_errors


def add_up(probabilities: list[float]) -> np.ndarray:
    """The distribution of how many of independent events happen."""
    out = np.ones(1)
    for p in probabilities:
        out = np.convolve(out, [1 - p, p])
    return out


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.05, 0.01, 1e-4]))
def test_limits_of_clicks_hold_whatever_the_single_probabilities_are(p: list[float], error: float) -> None:
    """But for what a single click says, by the square of the error: equal events are not quite the worst there."""
    clicks, n = np.arange(len(p) + 1.0), np.full(len(p) + 1, float(len(p)))
    low, high = limit_clicks(clicks, n, 1.0, error)
    chance = add_up(p)
    assert chance[low > sum(p) + 1e-12].sum() <= error + error**2
    assert chance[high < sum(p) - 1e-12].sum() <= error + error**2


def test_one_click_in_one_impression_says_next_to_nothing() -> None:
    low, high = limit_clicks(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 1.0, 1e-4)
    assert low[0] == pytest.approx(1e-4)
    assert high.tolist() == [1.0, pytest.approx(1 - 1e-4)]


def test_dispersion_widens_limits() -> None:
    c, n = np.array([40.0]), np.array([100.0])
    plain, wide = (limit_clicks(c, n, d, 0.001) for d in (1.0, 3.0))
    assert wide[0] < plain[0] < 40 < plain[1] < wide[1]


@pytest.mark.parametrize("mean", [4.0, 15.0, 80.0, 2000.0])
def test_intervals_of_log_counts_hold(mean: float) -> None:
    """The logarithm of a Poisson count c, with error 1/√c: normal intervals of few clicks would fail far more often."""
    z = 3.5
    c = np.arange(1, int(mean * 3 + 60))
    outside = np.abs(np.log(c / mean)) > widen_errors(1 / np.sqrt(c), z)
    assert poisson.pmf(c[outside], mean).sum() <= 2 * norm.sf(z)
    if mean < 20:
        plain = np.abs(np.log(c / mean)) > z / np.sqrt(c)
        assert poisson.pmf(c[plain], mean).sum() > 2 * norm.sf(z)


def test_widths_are_those_of_normal_errors_where_clicks_are_many() -> None:
    assert widen_errors(np.array([1e-3]), 4.0)[0] == pytest.approx(4e-3, rel=0.01)
    assert widen_errors(np.array([0.0, np.nan]), 4.0).tolist() == [0.0, np.inf]


def test_few_clusters_and_drawn_errors_have_wider_quantiles() -> None:
    assert find_quantile(0.025, None, None) == pytest.approx(1.96, abs=1e-3)
    assert find_quantile(0.025, 8, None) == pytest.approx(1.96, abs=1e-3)  # errors of few clusters are wide already
    assert find_quantile(1e-5, 8, None) == pytest.approx(t.isf(1e-5, 7) * 1.96 / t.isf(0.025, 7))
    assert find_quantile(1e-5, None, 24) > find_quantile(1e-5, None, None)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(1e-3, 1e3)), min_size=1, max_size=6), st.floats(0.1, 20))
def test_the_limit_of_what_was_never_clicked_is_where_chance_says_so(
    told: list[tuple[int, float]], bound: float
) -> None:
    clicks, reach = (np.array(column, float) for column in zip(*told, strict=True))
    u = limit_unclicked(np.zeros(len(told), np.int64), clicks, reach, 1, bound)[0]
    assert (clicks * np.log1p(u * reach)).sum() == pytest.approx(bound, rel=1e-6)


def test_without_anything_said_there_is_no_limit() -> None:
    found = limit_unclicked(np.array([0, 1]), np.array([3.0, 2.0]), np.array([0.0, 1.0]), 3, 5.0)
    assert np.isinf(found).tolist() == [True, False, True]

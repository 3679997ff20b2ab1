"""Predictions of a period against the formulas written out, and against chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elute.watching.calendar import design
from elute.watching.prediction import Prediction, predict
from reference import plain_watch


def one(y: np.ndarray, s: np.ndarray, x: np.ndarray, y_new: float, s_new: float, x_new: np.ndarray) -> Prediction:
    return predict(y, s, np.ones(len(y), np.bool_), x, np.array(y_new), np.array(s_new), x_new, 3)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(8, 40), st.floats(0, 1), st.booleans())
def test_it_is_the_meta_regression(seed: int, n: int, between: float, trend: bool) -> None:
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.01, 0.2, n)
    x = np.stack([np.ones(n), np.arange(n) / n], 1)[:, : 2 if trend else 1]
    y = rng.normal(0, np.sqrt(s + between))
    x_new = np.ones(x.shape[1])
    found = one(y, s, x, 0.7, 0.05, x_new)
    if found.kept.all():
        plain = plain_watch.predict(y, s, x, 0.05, x_new)
        assert float(found.expected) == pytest.approx(plain.expected, abs=1e-6)
        assert float(found.deviation) == pytest.approx(plain.deviation, rel=1e-6)
        assert float(found.freedom) == plain.freedom
        t = (0.7 - plain.expected) / plain.deviation
        assert float(found.p()) == pytest.approx(2 * stats.t.sf(abs(t), plain.freedom), rel=1e-6)
        assert float(found.p(1)) == pytest.approx(stats.t.sf(t, plain.freedom), rel=1e-6)
        assert float(found.p(-1)) == pytest.approx(stats.t.cdf(t, plain.freedom), rel=1e-6)


def test_of_equal_variances_it_is_the_classical_interval() -> None:
    """Mean ± t·s·√(1 + 1/n), where days differ by more than sampling."""
    y = np.random.default_rng(3).normal(0, 1, 20)
    found = one(y, np.full(20, 1e-6), np.ones((20, 1)), 3.0, 1e-6, np.ones(1))
    classical = y.std(ddof=1) * np.sqrt(1 + 1 / 20)
    assert float(found.deviation) == pytest.approx(classical, rel=1e-4)
    assert float(found.t) == pytest.approx((3 - y.mean()) / classical, rel=1e-4)


def test_columns_of_zeros_take_no_freedom() -> None:
    rng = np.random.default_rng(4)
    y, s = rng.normal(size=12), np.full(12, 0.5)
    x = np.ones((12, 1))
    wide = np.hstack([x, np.zeros((12, 7))])
    narrow, padded = one(y, s, x, 1.0, 0.5, x[0]), one(y, s, wide, 1.0, 0.5, wide[0])
    assert float(padded.freedom) == 11
    assert float(padded.t) == pytest.approx(float(narrow.t), rel=1e-6)


def test_what_is_not_there_does_not_count() -> None:
    rng = np.random.default_rng(5)
    y, s = rng.normal(size=20), np.full(20, 0.5)
    keep = np.arange(20) >= 8
    some = predict(y, s, keep, np.ones((20, 1)), np.array(0.3), np.array(0.5), np.ones(1), 3)
    short = one(y[8:], s[8:], np.ones((12, 1)), 0.3, 0.5, np.ones(1))
    assert float(some.t) == pytest.approx(float(short.t), rel=1e-9)


def test_too_short_a_baseline_says_nothing() -> None:
    found = one(np.zeros(3), np.ones(3), np.ones((3, 1)), 9.0, 1.0, np.ones(1))
    assert np.isnan(found.t)
    assert float(found.p()) == 1.0


def test_a_day_far_off_does_not_hide_the_next_but_what_lasts_does() -> None:
    y = np.random.default_rng(6).normal(0, 0.1, 28)
    s = np.full(28, 0.01)
    once, lasting = y.copy(), y.copy()
    once[20] += 3
    lasting[14:] += 3
    for changed, left_out, surprising in ((once, 1, True), (lasting, 0, False)):
        found = one(changed, s, np.ones((28, 1)), 3.0, 0.01, np.ones(1))
        assert (~found.kept).sum() == left_out
        assert (float(found.p()) < 1e-6) == surprising


@pytest.mark.parametrize("between", [0.0, 0.3])
@pytest.mark.parametrize("weekly", [False, True])
def test_chances_are_what_they_say(between: float, weekly: bool) -> None:
    """20,000 baselines of 28 days; p at most 1% in at most 1% of them, within error; days that differ or not."""
    rng, n = np.random.default_rng([7, weekly]), 20_000
    weekday = np.arange(29) % 7 if weekly else None
    x = design(weekday, np.arange(29) < 28, trend=weekly)
    s = rng.uniform(0.02, 0.05, (n, 29))
    y = rng.normal(0, np.sqrt(s + between**2)) + 0.4 * weekly * np.sin(np.arange(29) % 7)
    found = predict(y[:, :28], s[:, :28], np.ones(28, np.bool_), x[:28], y[:, 28], s[:, 28], x[28], 3)
    rate = (found.p() <= 0.01).mean()
    assert rate <= 0.0125
    assert rate >= (0.008 if between else 0.002)

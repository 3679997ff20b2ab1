"""Confidence sequences: against numeric optimisation, and against Brownian paths that are looked at many times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from elute.repair.looks.sequence import find_best_mixing, find_square, half_width, plan_sequence

ALPHAS = st.floats(-12, math.log10(0.5)).map(lambda power: 10.0**power)


def width(variance: float, mixing: float, alpha: float) -> float:
    return float(half_width(np.array([variance]), mixing, alpha)[0])


@given(alpha=ALPHAS)
def test_the_square_solves_its_equation(alpha: float) -> None:
    u = find_square(alpha)
    assert u > 1
    assert u - 1 - math.log(u) == pytest.approx(2 * math.log(1 / alpha), rel=1e-9)


@given(alpha=ALPHAS, variance=st.floats(1e-6, 10.0))
def test_no_mixing_is_tighter(alpha: float, variance: float) -> None:
    best = find_best_mixing(variance, alpha)
    tried = minimize_scalar(lambda power: width(variance, best * math.exp(power), alpha), bounds=(-3, 3)).fun
    assert width(variance, best, alpha) <= tried * (1 + 1e-9)
    assert width(variance, best, alpha) == pytest.approx(math.sqrt(find_square(alpha) * variance))


@given(target=st.floats(0.01, 1.0), links=st.integers(1, 10_000))
def test_the_target_is_reached_at_the_goal(target: float, links: int) -> None:
    sequence = plan_sequence(target, links)
    near = sequence.goal * np.array([0.99, 1.0, 1.01])
    widths = sequence.find_half_widths(near)
    assert widths[1] == pytest.approx(sequence.target) == pytest.approx(1.959964 * target)
    assert widths[0] < widths[1] < widths[2]
    assert sequence.goal * sequence.factor == pytest.approx(target**2)


def test_widths_where_nothing_or_everything_is_known() -> None:
    assert plan_sequence(0.1, 1).find_half_widths(np.array([np.inf, 0.0])).tolist() == [np.inf, 0.0]


def test_looking_costs_as_the_page_says() -> None:
    assert plan_sequence(0.1, 1).factor == pytest.approx(2.398, abs=1e-3)
    assert plan_sequence(0.1, 9).factor == pytest.approx(3.651, abs=1e-3)


@pytest.mark.parametrize("before", [0.0, 100.0])
def test_paths_leave_the_sequence_seldom_however_often_they_are_looked_at(before: float) -> None:
    """Errors are B(I)/I; `before`: information that was there before the first look. At 200 looks, dense at the start,
    plain intervals fail far more often than at 20, and the sequence never by more than it says."""
    rng, sequence = np.random.default_rng(0), plan_sequence(0.1, 1)
    information = before + np.geomspace(1e-2, 20 / sequence.goal, 200)
    steps = np.diff(information, prepend=0.0)
    path = np.cumsum(rng.normal(size=(4_000, 200)) * np.sqrt(steps), axis=1)
    error = np.abs(path / information)
    out = (error > sequence.find_half_widths(1 / information)).any(axis=1).mean()
    plain = (error > 1.96 / np.sqrt(information)).any(axis=1).mean()
    assert 0.005 < out < 0.05
    assert plain > 0.3

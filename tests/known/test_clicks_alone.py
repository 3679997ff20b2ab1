"""Posteriors from a table of clicks alone, in a world whose population is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from elute.known.clicks_alone import SHAPES, fit_population, infer_posteriors


@pytest.mark.parametrize(("a", "b"), [(0.5, 4.0), (1.0, 5.0), (3.0, 10.0)])
def test_the_population_is_found(a: float, b: float) -> None:
    rng = np.random.default_rng(1)
    exposure = np.exp(rng.uniform(0, 5, 20_000))
    clicks = rng.poisson(exposure * rng.gamma(a, 1 / b, len(exposure))).astype(float)
    found = fit_population(clicks, exposure)
    assert found == pytest.approx([a, b], rel=0.12)
    order = rng.permutation(len(clicks))
    assert (fit_population(clicks[order], exposure[order]) == found).all()


def test_it_is_the_most_likely_one_by_scipy() -> None:
    rng = np.random.default_rng(2)
    exposure = rng.uniform(1, 50, 800)
    clicks = rng.poisson(exposure * rng.gamma(1.5, 1 / 6, 800)).astype(float)
    a, b = fit_population(clicks, exposure)

    def likelihood(shape: float, rate: float) -> float:
        return float(stats.nbinom(shape, rate / (rate + exposure)).logpmf(clicks).sum())

    best = likelihood(a, b)
    for shape, rate in [(a * 1.05, b), (a / 1.05, b), (a, b * 1.05), (a, b / 1.05), (a * 1.1, b * 1.1)]:
        assert likelihood(shape, rate) < best + 1e-3


def test_exposure_is_what_makes_the_models_figure_a_rate() -> None:
    clicks, impressions = np.array([10.0, 0.0, 3.0, 0.0]), np.array([100.0, 40.0, 3.0, 7.0])
    shape, rate, (a, b) = infer_posteriors(clicks, np.array([0.2, 0.0, 0.5, np.nan]), impressions)
    share = (50 + 6) / (100 + 3)  # of an impression that counts, where there are clicks
    assert shape[:3] - a == pytest.approx([10, 0, 3]) and rate[:3] - b == pytest.approx([50, 40 * share, 6])
    assert np.isnan(shape[3]) and np.isnan(rate[3])
    assert SHAPES[0] <= a <= SHAPES[1]


@pytest.mark.parametrize("clicks", [[0.0, 0.0, 0.0], [5.0], []])
def test_tables_with_little_in_them(clicks: list[float]) -> None:
    c = np.array(clicks)
    shape, rate, population = infer_posteriors(c, c / 10, np.full(len(c), 10.0))
    assert np.isfinite(population).all() and (population > 0).all()
    assert (shape > 0).all() and (rate > 0).all()

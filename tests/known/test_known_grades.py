"""Places and grades from posteriors, against draws from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from elute.judging.bands import SMALL, grade_places
from elute.known.pairs import KNOWN, OTHERS, Order, order_items
from elute.known.signs import take_as_given
from reference.plain_places import count_grades, draw_places, measure_openness

Floats = NDArray[np.float64]
POPULATION = (1.0, 3.0)


def compare(
    shape: NDArray[np.float64], rate: NDArray[np.float64], query: NDArray[np.int64], population: tuple[float, float]
) -> Order:
    """Items of one component whose posteriors are their own."""
    one = np.zeros(len(shape), np.int64)
    return order_items(shape, rate, np.ones(len(shape)), query, one, population, take_as_given())


DRAWS = 40_000


def draw_posteriors(n: int, seed: int) -> tuple[Floats, Floats]:
    """Items seen from once to some hundred times."""
    rng = np.random.default_rng(seed)
    exposure = np.exp(rng.uniform(0, 6, n))
    clicks = rng.poisson(exposure * rng.gamma(POPULATION[0], 1 / POPULATION[1], n))
    return POPULATION[0] + clicks.astype(np.float64), POPULATION[1] + exposure


@pytest.mark.parametrize("n", [2, 3, 10, SMALL, SMALL + 1, OTHERS])
def test_order_and_grades_are_those_of_draws(n: int) -> None:
    shape, rate = draw_posteriors(n, n)
    query = np.zeros(n, np.int64)
    draws = DRAWS if n < 100 else 10_000
    beaten = draw_places(shape, rate, draws, 1)
    found = compare(shape, rate, query, POPULATION)
    assert found.place == pytest.approx(beaten.mean(axis=0) / (n - 1), abs=0.015)
    if n <= SMALL:
        assert found.open == pytest.approx(measure_openness(shape, rate, draws, 2), abs=0.02)
        assert found.known.tolist() == (found.open <= KNOWN).tolist()
    for levels in (2, 4, 5):
        counted = count_grades(beaten, levels)
        graded = grade_places(shape, rate, query, POPULATION, levels)
        at = np.arange(n), graded.grade
        assert graded.confidence == pytest.approx(counted[at], abs=0.03)
        assert (counted[at] > counted.max(axis=1) - 0.05).all()


def test_items_that_are_not_wanted_change_nothing_for_the_others() -> None:
    shape, rate = draw_posteriors(60, 9)
    query, wanted = np.repeat([0, 1, 2], [10, 49, 1]), np.arange(60) % 3 == 0
    whole, some = (grade_places(shape, rate, query, POPULATION, 4, mask) for mask in (None, wanted))
    assert (some.grade[wanted] == whole.grade[wanted]).all()
    assert some.confidence[wanted] == pytest.approx(whole.confidence[wanted])
    assert np.isnan(some.confidence[~wanted]).all()


def test_a_query_with_more_items_than_are_compared() -> None:
    n = 3 * OTHERS
    shape, rate = draw_posteriors(n, 5)
    beaten = draw_places(shape, rate, 4_000, 1)
    found = compare(shape, rate, np.zeros(n, np.int64), POPULATION)
    assert found.place == pytest.approx(beaten.mean(axis=0) / (n - 1), abs=0.02)
    graded = grade_places(shape, rate, np.zeros(n, np.int64), POPULATION, 4)
    assert graded.confidence == pytest.approx(count_grades(beaten, 4)[np.arange(n), graded.grade], abs=0.08)


def test_an_item_alone_has_a_place_in_the_population() -> None:
    shape, rate = draw_posteriors(30, 3)
    alone = np.arange(30)
    draw = np.random.default_rng(0).gamma(shape, 1 / rate, size=(DRAWS, 30))
    place = stats.gamma(POPULATION[0], scale=1 / POPULATION[1]).cdf(draw)
    assert compare(shape, rate, alone, POPULATION).place == pytest.approx(place.mean(axis=0), abs=0.01)
    graded = grade_places(shape, rate, alone, POPULATION, 4)
    counted = (np.floor(4 * place) == graded.grade).mean(axis=0)
    assert graded.confidence == pytest.approx(counted, abs=0.015)


seen = st.tuples(st.integers(0, 2), st.integers(0, 30), st.floats(0.5, 100))


@settings(deadline=None)
@given(st.lists(seen, min_size=1, max_size=14), st.randoms(use_true_random=False), st.integers(2, 5))
def test_the_order_of_the_table_and_names_of_queries_change_nothing(
    drawn: list[tuple[int, int, float]], random: np.random.Generator, levels: int
) -> None:
    query, clicks, exposure = (np.array(column) for column in zip(*drawn, strict=True))
    shape, rate = POPULATION[0] + clicks, POPULATION[1] + exposure
    order = list(range(len(drawn)))
    random.shuffle(order)
    names = np.array([7, 3, 11])
    first = compare(shape, rate, query, POPULATION)
    second = compare(shape[order], rate[order], names[query][order], POPULATION)
    assert second.place == pytest.approx(first.place[order]) and second.open == pytest.approx(first.open[order])
    one = grade_places(shape, rate, query, POPULATION, levels)
    other = grade_places(shape[order], rate[order], names[query][order], POPULATION, levels)
    assert other.grade.tolist() == one.grade[order].tolist()
    assert other.confidence == pytest.approx(one.confidence[order])


@settings(deadline=None)
@given(st.lists(seen, min_size=2, max_size=12), st.floats(0.1, 1000))
def test_exposure_without_a_click_never_raises_a_place(drawn: list[tuple[int, int, float]], more: float) -> None:
    query, clicks, exposure = (np.array(column) for column in zip(*drawn, strict=True))
    shape, rate = POPULATION[0] + clicks, POPULATION[1] + exposure
    longer = rate.copy()
    longer[0] += more
    before, after = (compare(shape, rates, query, POPULATION).place for rates in (rate, longer))
    assert after[0] <= before[0] + 1e-12
    assert (after[1:] >= before[1:] - 1e-12).all()


def test_look_alikes_are_known_nowhere() -> None:
    """Nobody clicked on any: each has half a chance against each."""
    same = compare(np.full(9, 1.0), np.full(9, 4.0), np.zeros(9, np.int64), POPULATION)
    assert same.place == pytest.approx(np.full(9, 0.5)) and not same.known.any()
    graded = grade_places(np.full(9, 1.0), np.full(9, 4.0), np.zeros(9, np.int64), POPULATION, 3)
    assert graded.confidence == pytest.approx(np.full(9, 1 / 3), abs=0.02) and len(set(graded.grade.tolist())) == 1


def test_items_without_a_posterior_are_compared_with_nothing() -> None:
    shape, rate = np.array([50.0, np.nan, 900.0]), np.array([1000.0, np.nan, 1000.0])
    found = compare(shape, rate, np.zeros(3, np.int64), POPULATION)
    assert found.known.tolist() == [True, False, True]
    graded = grade_places(shape, rate, np.zeros(3, np.int64), POPULATION, 2)
    assert graded.grade[[0, 2]].tolist() == [0, 1] and np.isnan(graded.confidence[1])

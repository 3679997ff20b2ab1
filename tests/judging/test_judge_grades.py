"""Rules that make grades, against their definition written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from elute.errors import EluteError
from elute.judging.grades import Floats, Quantiles, Rule, Thresholds, parse_rule

CERTAIN = 1e9
"""Exposure after which nothing is left open."""

items = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=30, unique=True)


def grade(rule: Rule, relevance: Floats, query: NDArray[np.int64]) -> list[int]:
    """Of items whose relevance is certain."""
    found = rule.grade(relevance * CERTAIN, np.full(len(relevance), CERTAIN), query, (1.0, 1.0))
    assert np.allclose(found.confidence, 1)
    return found.grade.tolist()


@given(items, st.integers(2, 6))
def test_quantiles_are_what_they_say(drawn: list[tuple[int, int]], levels: int) -> None:
    shared = [(q, r) for q, r in drawn if sum(other == q for other, _ in drawn) > 1]
    query, relevance = np.array([q for q, _ in shared], np.int64), np.array([(1 + r) / 50 for _, r in shared])
    for i, mine in enumerate(grade(Quantiles(levels), relevance, query)):
        others = relevance[query == query[i]]
        below = int((others < relevance[i]).sum())
        assert mine == math.floor(levels * (2 * below + 1) / (2 * len(others)))
        assert 0 <= mine < levels


def test_as_many_items_as_grades_get_one_each() -> None:
    relevance = np.array([0.3, 0.9, 0.1, 0.5, 0.2])
    assert grade(Quantiles(5), relevance, np.zeros(5, np.int64)) == [2, 4, 0, 3, 1]


@pytest.mark.parametrize(
    ("relevance", "expected"), [(1e-3, 0), (0.0999, 0), (0.1001, 1), (0.301, 2), (0.59, 2), (4.0, 3)]
)
def test_thresholds_are_reached(relevance: float, expected: int) -> None:
    assert grade(parse_rule("0.1,0.3,0.6", None), np.array([relevance]), np.array([0])) == [expected]


@given(st.floats(0.1, 50), st.floats(0.1, 50))
def test_thresholds_take_the_most_probable_band(shape: float, rate: float) -> None:
    below = stats.gamma(shape, scale=1 / rate).cdf([0, 0.1, 0.3, 0.6, np.inf])
    found = Thresholds((0.1, 0.3, 0.6)).grade(np.array([shape]), np.array([rate]), np.array([0]), (1.0, 1.0))
    assert found.confidence == pytest.approx([np.diff(below).max()])
    assert np.diff(below)[found.grade[0]] == pytest.approx(np.diff(below).max())


def test_rules_by_name() -> None:
    assert parse_rule(None, None) == parse_rule("quantiles", 4) == Quantiles(4)
    assert parse_rule("quantiles", 7).levels == 7
    assert parse_rule("0.2,0.5", 3) == Thresholds((0.2, 0.5))
    assert parse_rule("0.2", None).description == (
        "grades 0 to 1: how many of the thresholds 0.2 relevance most probably reaches"
    )


@pytest.mark.parametrize(
    ("text", "levels", "words"),
    [
        ("quantile", None, "neither 'quantiles' nor thresholds"),
        ("0.3,0.1", None, "in rising order"),
        ("0.1,0.1", None, "in rising order"),
        ("0,0.5", None, "above 0"),
        ("0.1,nan", None, "numbers above 0"),
        ("0.1,inf", None, "numbers above 0"),
        ("0.1,,0.2", None, "neither"),
        ("0.1,0.2", 4, "makes 3 grades, not the 4 of `levels=`"),
    ],
)
def test_rules_that_are_none(text: str, levels: int | None, words: str) -> None:
    with pytest.raises(EluteError, match=words):
        parse_rule(text, levels)

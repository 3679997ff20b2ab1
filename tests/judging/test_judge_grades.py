"""Rules that make grades, against their definition written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.judging.grades import Quantiles, Thresholds, parse_rule

items = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=30)


@given(items, st.integers(2, 6))
def test_quantiles_are_what_they_say(drawn: list[tuple[int, int]], levels: int) -> None:
    present = sorted({query for query, _ in drawn})
    query = np.array([present.index(q) for q, _ in drawn])
    relevance = np.array([r / 6 for _, r in drawn])
    grade = Quantiles(levels).grades(relevance, query)
    for i, mine in enumerate(relevance):
        others = [r for q, r in zip(query, relevance, strict=True) if q == query[i]]
        below, alike = sum(r < mine for r in others), sum(r == mine for r in others)
        assert grade[i] == math.floor(levels * (2 * below + alike) / (2 * len(others)))
        assert 0 <= grade[i] < levels


@given(items, st.integers(2, 6), st.integers(1, 1000))
def test_quantiles_do_not_depend_on_scale_or_order(drawn: list[tuple[int, int]], levels: int, scale: int) -> None:
    present = sorted({query for query, _ in drawn})
    query, relevance = np.array([present.index(q) for q, _ in drawn]), np.array([float(r) for _, r in drawn])
    grade = Quantiles(levels).grades(relevance, query)
    assert (Quantiles(levels).grades(relevance * scale, query) == grade).all()
    assert (Quantiles(levels).grades(relevance[::-1], query[::-1])[::-1] == grade).all()


def test_as_many_items_as_grades_get_one_each() -> None:
    assert Quantiles(5).grades(np.array([0.3, 0.9, 0.1, 0.5, 0.2]), np.zeros(5, int)).tolist() == [2, 4, 0, 3, 1]


@pytest.mark.parametrize(("relevance", "grade"), [(0.0, 0), (0.0999, 0), (0.1, 1), (0.3, 2), (0.59, 2), (4.0, 3)])
def test_a_threshold_is_reached_at_its_value(relevance: float, grade: int) -> None:
    assert parse_rule("0.1,0.3,0.6", None).grades(np.array([relevance]), np.array([0])).tolist() == [grade]


def test_rules_by_name() -> None:
    assert parse_rule(None, None) == parse_rule("quantiles", 4) == Quantiles(4)
    assert parse_rule("quantiles", 7).levels == 7
    assert parse_rule("0.2,0.5", 3) == Thresholds((0.2, 0.5))
    assert parse_rule("0.2", None).description == "grades 0 to 1: how many of the thresholds 0.2 relevance reaches"


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

"""Click probabilities and pattern probabilities of every user against its plain story, branch by branch."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from users_and_stories import CASES, Page, draw_pages, shown_of

from elute.simulation.shown import ShownPages
from elute.simulation.users import USERS, PositionBased, UserBrowsing, browsing_table, build_user
from reference import plain_users as plain

LENGTHS = [6, 5, 4, 3, 2, 1, 0, 6, 4]
NAMES = sorted(CASES)
probability = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0, allow_subnormal=False))


def test_every_user_of_the_registry_has_a_story() -> None:
    assert {name.removesuffix("-eta").removesuffix("-flat") for name in CASES} == set(USERS)


def every_pattern(width: int) -> np.ndarray:
    return np.array(list(product([0, 1], repeat=width)), np.uint8).reshape(-1, width)


def repeated(shown: ShownPages, page: int, times: int) -> ShownPages:
    def rows(values):
        return None if values is None else np.repeat(values[page : page + 1], times, axis=0)

    return ShownPages(rows(shown.relevance), rows(shown.length), rows(shown.satisfaction), rows(shown.context))


@pytest.mark.parametrize("satisfaction", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_marginals_and_patterns_are_the_storys(name: str, satisfaction: bool) -> None:
    user, story = CASES[name]
    pages = draw_pages(7, LENGTHS, satisfaction)
    shown = shown_of(pages, 7)
    marginal = user.probabilities(shown)
    patterns = every_pattern(7)
    for i, page in enumerate(pages):
        truth = plain.endings(story(page))
        assert sum(truth.values()) == pytest.approx(1.0, abs=1e-12)
        expected = [sum(p for clicked, p in truth.items() if k in clicked) for k in range(7)]
        np.testing.assert_allclose(marginal[i], expected, rtol=1e-12, atol=1e-15)

        log_p = user.log_probability(repeated(shown, i, len(patterns)), patterns)
        wanted = [truth.get(frozenset(np.flatnonzero(pattern).tolist()), 0.0) for pattern in patterns]
        np.testing.assert_allclose(np.exp(log_p), wanted, rtol=1e-11, atol=1e-15)
        assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_padding_changes_nothing(name: str, data: st.DataObject) -> None:
    """Neither its width nor what it holds: not the probabilities, not the clicks of a seed."""
    user, _ = CASES[name]
    lists = data.draw(st.lists(st.lists(probability, max_size=5), min_size=1, max_size=4))
    pages = [Page(r, None, [k % 6 for k in range(len(r))]) for r in lists]
    width = max(map(len, lists))
    narrow = shown_of(pages, width)
    wide = shown_of(
        pages, width + data.draw(st.integers(1, 4)), data.draw(st.sampled_from([np.nan, np.inf, 0.9, -1.0]))
    )
    seed = data.draw(st.integers(0, 2**32))
    clicks = user.draw_clicks(narrow, np.random.default_rng(seed))
    wider = user.draw_clicks(wide, np.random.default_rng(seed))
    np.testing.assert_array_equal(wider[:, :width], clicks)
    assert not wider[~wide.mask].any()
    np.testing.assert_allclose(user.probabilities(wide)[:, :width], user.probabilities(narrow), rtol=1e-13)
    assert not user.probabilities(wide)[~wide.mask].any()
    log_p = user.log_probability(narrow, clicks)
    np.testing.assert_allclose(user.log_probability(wide, wider), log_p, rtol=1e-12)
    assert np.isfinite(log_p).all()  # what was drawn is possible


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_patterns_sum_to_one_and_to_the_marginals(name: str, data: st.DataObject) -> None:
    user, _ = CASES[name]
    relevance = data.draw(st.lists(probability, min_size=1, max_size=5))
    satisfaction = data.draw(st.none() | st.lists(probability, min_size=len(relevance), max_size=len(relevance)))
    shown = shown_of([Page(relevance, satisfaction, [k % 6 for k in range(len(relevance))])], len(relevance))
    patterns = every_pattern(len(relevance))
    p = np.exp(user.log_probability(repeated(shown, 0, len(patterns)), patterns))
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(p @ patterns, user.probabilities(shown)[0], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_click_on_padding_is_impossible(name: str) -> None:
    user, _ = CASES[name]
    shown = shown_of(draw_pages(1, [3, 0], False), 5)
    clicks = np.zeros((2, 5), np.uint8)
    clicks[:, 4] = 1
    assert (user.log_probability(shown, clicks) == -np.inf).all()


@pytest.mark.parametrize("name", sorted(USERS))
def test_defaults_give_probabilities_on_ten_results(name: str) -> None:
    user = build_user(name)
    shown = shown_of(draw_pages(3, [10, 10, 7], False), 10)
    p = user.probabilities(shown)
    assert ((p >= 0) & (p <= 1)).all() and p[2, :7].any() and not p[2, 7:].any()
    clicks = user.draw_clicks(shown, np.random.default_rng(0))
    assert clicks.dtype == np.uint8 and clicks.shape == (3, 10)
    assert np.isfinite(user.log_probability(shown, clicks)).all()


def test_no_pages_no_clicks() -> None:
    shown = ShownPages(np.zeros((0, 10)), np.zeros(0, np.int64), None, np.zeros((0, 10), np.int32))
    for name in USERS:
        user = build_user(name)
        assert user.draw_clicks(shown, np.random.default_rng(0)).shape == (0, 10)
        assert user.probabilities(shown).shape == (0, 10)
        assert user.log_probability(shown, np.zeros((0, 10))).shape == (0,)


def test_browsing_before_the_first_click_is_the_reciprocal_user() -> None:
    """The default table: with nothing clicked above, rank k is examined with 1/k; right below a click with 1/√k."""
    table = browsing_table(12)
    np.testing.assert_allclose(np.diag(table), 1 / np.arange(1, 13))
    np.testing.assert_allclose(table[:, 0], 1 / np.sqrt(np.arange(1, 13)))
    shown = shown_of(draw_pages(2, [8, 5], False), 8)
    none = np.zeros((2, 8))
    reciprocal = PositionBased(1 / np.arange(1, 9))
    np.testing.assert_allclose(
        UserBrowsing().log_probability(shown, none), reciprocal.log_probability(shown, none), rtol=1e-12
    )

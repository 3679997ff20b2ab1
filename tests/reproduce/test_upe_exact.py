"""UPE's second stage solved exactly, against a general optimiser and the law's own consequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

from elute.simulation.grades import PROPENSITIES
from elute_reproduce.upe import exact
from elute_reproduce.upe.exact import ShownLists

TRUE = np.array(PROPENSITIES)


def draw_lists(seed: int, lists: int = 60, *, short: bool = False) -> ShownLists:
    """Ranked by a score that is noisy log relevance; where `short`, some lists end early."""
    rng = np.random.default_rng(seed)
    log_r = rng.normal(-1, 0.8, (lists, 10))
    score = log_r + 0.5 * rng.normal(size=log_r.shape)
    order = np.argsort(-score, axis=1)
    score, log_r = (np.take_along_axis(values, order, 1) for values in (score, log_r))
    if short:
        gone = np.arange(10) >= rng.integers(3, 11, lists)[:, None]
        gone[0] = False
        score, log_r = np.where(gone, np.nan, score), np.where(gone, np.nan, log_r)
    return ShownLists(score, np.exp(np.minimum(log_r, 0)))


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.7, 2.0])
def test_it_is_the_minimum_of_equation_13(short, scale):
    shown = draw_lists(1, short=short)
    y = np.log(TRUE) + np.random.default_rng(2).normal(0, 0.3, 10)
    target = exact.target_of(y, shown.there)

    def loss(b):
        logits = np.where(shown.there, scale * shown.score + np.append(b, 0.0), -1e30)
        return -(np.where(shown.there, target, 0) * log_softmax(logits, axis=1)).sum()

    found = exact.adjust(shown, y, scale)
    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(found[:-1], best, atol=2e-5)
    assert found[-1] == 0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 3), shift=st.floats(-5, 5))
def test_what_scores_add_to_a_list_is_of_no_matter_but_their_scale_is(seed, scale, shift):
    shown, y = draw_lists(seed), np.log(TRUE)
    moved = shown._replace(score=shown.score + shift * np.arange(len(shown.score))[:, None])
    plain = exact.adjust(shown, y, scale)
    np.testing.assert_allclose(exact.adjust(moved, y, scale), plain, atol=1e-6)
    # Documents are ranked by their scores: the larger these are, the more is taken from the first position.
    assert exact.adjust(shown, y, scale + 0.5)[0] < plain[0]


def test_without_a_score_it_is_its_target_and_so_it_is_as_printed():
    shown, y = draw_lists(3, 4_000), np.log(TRUE) - np.log(TRUE[-1])
    np.testing.assert_allclose(exact.adjust(shown, y, 0.0), y, atol=1e-9)
    assert exact.adjust_own(shown, y, 0.3) == pytest.approx(y, abs=0.05)
    assert exact.approximate(shown, y, 0.3) == pytest.approx(exact.adjust(shown, y, 0.3), abs=0.05)


@pytest.mark.parametrize("short", [False, True])
def test_clicks_with_the_true_relevance_as_the_score_give_the_truth(short):
    shown = draw_lists(4, short=short)
    found = exact.adjust_clicks(shown, TRUE, np.log(shown.relevance))
    np.testing.assert_allclose(np.exp(found), TRUE / TRUE[-1], rtol=1e-6)
    wrong = exact.adjust_clicks(shown, TRUE, 0.5 * np.log(shown.relevance))
    assert abs(wrong[0] - np.log(TRUE[0] / TRUE[-1])) > 0.1


def test_the_scale_that_gives_the_truth_is_found_or_there_is_none():
    shown = draw_lists(5)
    y = np.log(TRUE / TRUE[-1]) * 1.3
    scale = exact.find_scale(shown, y, TRUE[0] / TRUE[-1])
    assert scale is not None
    assert np.exp(exact.adjust(shown, y, scale)[0]) == pytest.approx(TRUE[0] / TRUE[-1], rel=1e-3)
    assert exact.find_scale(shown, 0.5 * y, TRUE[0] / TRUE[-1]) is None

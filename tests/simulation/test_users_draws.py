"""What users draw: frequencies against probabilities, whole patterns by chi-square, seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from users_and_stories import CASES, Page, draw_pages, shown_of

from elute.simulation.shown import ShownPages
from elute.simulation.users import USERS, PositionBased, build_user

NAMES = sorted(CASES)
N = 200_000


def tiled(shown: ShownPages, times: int) -> ShownPages:
    def rows(values):
        return None if values is None else np.tile(values, (times,) + (1,) * (values.ndim - 1))

    return ShownPages(rows(shown.relevance), rows(shown.length), rows(shown.satisfaction), rows(shown.context))


@pytest.mark.parametrize("name", NAMES)
def test_frequencies_within_four_standard_errors(name: str) -> None:
    user, _ = CASES[name]
    shown = shown_of(draw_pages(11, [8, 5, 1, 7], True), 9)
    p = user.probabilities(shown)
    clicks = user.draw_clicks(tiled(shown, N), np.random.default_rng(5)).reshape(N, 4, 9)
    error = np.sqrt(p * (1 - p) / N)
    assert (np.abs(clicks.mean(axis=0) - p) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("name", sorted(USERS))
def test_frequencies_of_the_defaults_on_ragged_pages(name: str) -> None:
    """Many different pages at once, as in a log: clicks by place against the sum of their probabilities."""
    user = build_user(name)
    rng = np.random.default_rng(3)
    n = 100_000
    length = rng.integers(0, 11, n)
    shown = ShownPages(rng.uniform(0, 1, (n, 10)), length, None, rng.integers(5_000, size=(n, 10)).astype(np.int32))
    p = user.probabilities(shown)
    clicks = user.draw_clicks(shown, rng)
    error = np.sqrt((p * (1 - p)).sum(axis=0))
    assert (np.abs(clicks.sum(axis=0) - p.sum(axis=0)) <= 4 * error).all()
    assert not clicks[~shown.mask].any()


@pytest.mark.parametrize("name", NAMES)
def test_whole_patterns_by_chi_square(name: str) -> None:
    """Not the marginals only: how clicks go together."""
    user, _ = CASES[name]
    shown = shown_of([Page([0.35, 0.6, 0.2, 0.8, 0.5], None, [0, 3, 1, 4, 2])], 5)
    patterns = (np.arange(32)[:, None] >> np.arange(5)) & 1
    expected = N * np.exp(user.log_probability(tiled(shown, 32), patterns))
    clicks = user.draw_clicks(tiled(shown, N), np.random.default_rng(17))
    observed = np.bincount(clicks @ (1 << np.arange(5)), minlength=32)
    assert not observed[expected == 0].any()
    common = expected >= 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    keep = expected > 0
    assert keep.sum() >= 4
    assert stats.chisquare(observed[keep], expected[keep], sum_check=False).pvalue > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_seeds(name: str) -> None:
    """The same seed gives the same clicks, in one go or in parts; different seeds are uncorrelated."""
    user, _ = CASES[name]
    n = 20_000
    shown = tiled(shown_of(draw_pages(19, [6, 8], False), 8), n // 2)
    assert shown.context is not None
    first = user.draw_clicks(shown, np.random.default_rng(1))
    np.testing.assert_array_equal(first, user.draw_clicks(shown, np.random.default_rng(1)))

    rng = np.random.default_rng(1)
    parts = []
    for start, end in ((0, 7), (7, 8), (8, 12_345), (12_345, n)):
        part = ShownPages(shown.relevance[start:end], shown.length[start:end], None, shown.context[start:end])
        parts.append(user.draw_clicks(part, rng))
    np.testing.assert_array_equal(first, np.concatenate(parts))

    p = user.probabilities(shown)
    for other in (user.draw_clicks(shown, np.random.default_rng(2)), user.draw_clicks(shown, rng)):
        uncertain = (p > 0) & (p < 1)
        z = ((first - p) * (other - p))[uncertain] / (p * (1 - p))[uncertain]
        # places of a page are dependent, pages are not: the mean over pages has the error of its own spread
        by_page = np.bincount(np.nonzero(uncertain)[0], z, minlength=n)
        assert abs(by_page.mean()) < 4 * by_page.std() / np.sqrt(n)


def test_position_based_draws_are_numpys_own() -> None:
    """On full pages: the same stream of uniforms, one a place, as the plain numpy line."""
    rng = np.random.default_rng(0)
    relevance = rng.uniform(0, 1, (1_000, 10))
    user = PositionBased()
    clicks = user.draw_clicks(ShownPages(relevance, np.full(1_000, 10)), np.random.default_rng(4))
    uniforms = np.random.default_rng(4).random((1_000, 10))
    np.testing.assert_array_equal(clicks, uniforms < relevance * user.propensities)

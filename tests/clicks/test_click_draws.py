"""Draws have the probabilities of their patterns; networks are marginalised by drawing."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from click_worlds import DOCUMENTS, every_pattern, random_model, random_pages

from elute.clicks import MODELS, Sessions


@pytest.mark.parametrize("name", MODELS)
def test_drawn_patterns_have_their_probabilities(name: str) -> None:
    """Pearson's χ² over whole patterns of a page of four, and the same key drawing the same clicks."""
    model = random_model(name, 4, 0.7)
    page = random_pages(5, [4])
    times = 20_000
    rows = np.zeros(times, np.int64)
    key = jax.random.key(6)
    drawn = model.sample(key, page.take(rows))
    np.testing.assert_array_equal(model.sample(key, page.take(rows[:9000])).click, drawn.click[:9000])
    patterns = every_pattern(page)
    p = np.exp(model.log_likelihood(patterns))
    code = drawn.click[:, :4] @ [8, 4, 2, 1]
    found = np.bincount(code, minlength=16)
    assert not found[p < 1e-9].any()
    possible = p >= 1e-9
    chi2 = ((found - times * p)[possible] ** 2 / (times * p[possible])).sum()
    freedom = possible.sum() - 1
    assert abs(chi2 - freedom) < 5 * np.sqrt(2 * freedom) + 5


def test_long_pages_of_networks_are_marginalised_by_drawing() -> None:
    """Drawn marginals of NCM and CACM against the sum over all patterns, within five standard errors of 1/(2√n)."""
    for name in ("ncm", "cacm"):
        exact, drawn = random_model(name, 7, 0.7), random_model(name, 7, 0.7, samples=31)
        pages = random_pages(8, [5] * 200)
        error = drawn.predict_clicks(pages) - exact.predict_clicks(pages)
        assert np.abs(error).max() < 5 * 0.5 / np.sqrt(31)
        assert np.abs(error.mean()) < 5 * 0.5 / np.sqrt(31 * 200)
        assert np.abs(error).max() > 0


def test_documents_on_top_are_the_relevance_of_networks() -> None:
    for name in ("ncm", "cacm"):
        model = random_model(name, 9)
        alone = Sessions.of(np.arange(DOCUMENTS)[:, None], np.zeros((DOCUMENTS, 1)))
        np.testing.assert_allclose(model.relevance(), model.predict_clicks(alone)[:, 0], rtol=1e-5)

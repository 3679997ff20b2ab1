"""Likelihood, conditional and marginal predictions of every model against its plain story, pattern by pattern."""

from __future__ import annotations

import numpy as np
import pytest
from click_worlds import RANKS, every_pattern, plain_params, random_model, random_pages, together
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.clicks import MODELS, Sessions
from reference import plain_users as plain
from reference.click_stories import STORIES

LENGTHS = [5, 4, 3, 2, 1, 0, 5]


def test_every_model_has_a_story() -> None:
    assert set(STORIES) == set(MODELS)


def truth_of(name, model, page: Sessions) -> dict[tuple[int, ...], float]:
    """{pattern: probability} of one page."""
    docs = page.doc[0, : page.length[0]].tolist()
    endings = plain.endings(STORIES[name](plain_params(model), int(page.query[0]), docs))
    return {tuple(int(k in clicked) for k in range(len(docs))): p for clicked, p in endings.items()}


@pytest.mark.parametrize("name", MODELS)
def test_patterns_conditionals_and_marginals_are_the_storys(name: str) -> None:
    model = random_model(name, 1)
    pages = random_pages(2, LENGTHS)
    each = [every_pattern(pages.take(slice(i, i + 1))) for i in range(len(pages))]
    everything = together(each)
    log_p = model.log_likelihood(everything)
    conditional = model.predict_conditional_clicks(everything)
    marginal = model.predict_clicks(pages)
    start = 0
    for i, patterns in enumerate(each):
        truth = truth_of(name, model, pages.take(slice(i, i + 1)))
        length = LENGTHS[i]
        p = np.exp(log_p[start : start + len(patterns)])
        wanted = [truth.get(tuple(row[:length].tolist()), 0.0) for row in patterns.click]
        np.testing.assert_allclose(p, wanted, rtol=2e-5, atol=1e-9)
        assert p.sum() == pytest.approx(1.0, abs=2e-6)
        expected = [sum(q for pattern, q in truth.items() if pattern[k]) for k in range(length)]
        np.testing.assert_allclose(marginal[i, :length], expected, rtol=2e-5)
        assert not marginal[i, length:].any()
        for j, row in enumerate(patterns.click):
            for k in range(length):
                above = tuple(row[:k].tolist())
                before = sum(q for pattern, q in truth.items() if pattern[:k] == above)
                if before > 0:
                    clicked = sum(q for pattern, q in truth.items() if pattern[: k + 1] == (*above, 1))
                    assert conditional[start + j, k] == pytest.approx(clicked / before, rel=3e-5, abs=1e-9)
            assert not conditional[start + j, length:].any()
        start += len(patterns)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_patterns_sum_to_one_at_extreme_parameters(name: str, data: st.DataObject) -> None:
    """Logits far out: everything stays in log space, so that nothing is lost."""
    model = random_model(name, data.draw(st.integers(0, 1000)), data.draw(st.sampled_from([0.01, 1.0, 10.0, 25.0])))
    page = random_pages(data.draw(st.integers(0, 1000)), [RANKS])
    log_p = model.log_likelihood(every_pattern(page))
    assert not np.isnan(log_p).any() and (log_p <= 1e-6).all()
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-5)
    marginal = np.exp(log_p) @ every_pattern(page).click
    np.testing.assert_allclose(marginal, model.predict_clicks(page)[0], atol=1e-5)

"""Every model against its plain story, pattern by pattern; draws have these probabilities, padding changes nothing.

All in one shape of arrays and, by the scope of the parameter, model after model: each is compiled once.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from click_worlds import DOCUMENTS, RANKS, every_pattern, plain_params, random_model, random_pages, together
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.clicks import MODELS, Sessions
from reference import plain_users as plain
from reference.click_stories import STORIES

LENGTHS = [5, 4, 3, 2, 1, 0, 5]

pytestmark = pytest.mark.usefixtures("quick_compiling")
every_model = pytest.mark.parametrize("name", MODELS, scope="module")


def test_every_model_has_a_story() -> None:
    assert set(STORIES) == set(MODELS)


def truth_of(name, model, page: Sessions) -> dict[tuple[int, ...], float]:
    """{pattern: probability} of one page."""
    docs = page.doc[0, : page.length[0]].tolist()
    endings = plain.endings(STORIES[name](plain_params(model), int(page.query[0]), docs))
    return {tuple(int(k in clicked) for k in range(len(docs))): p for clicked, p in endings.items()}


@every_model
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


@every_model
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


@every_model
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_padding_changes_nothing(name: str, data: st.DataObject) -> None:
    """Neither its width nor what it holds: no prediction, no likelihood, no draw."""
    model = random_model(name, 3)
    lengths = [RANKS, *data.draw(st.lists(st.integers(0, RANKS), min_size=3, max_size=3))]
    pages = random_pages(data.draw(st.integers(0, 100)), lengths)
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    clicks = rng.integers(0, 2, pages.click.shape).astype(np.uint8)
    if name == "cascade":
        clicks[:] = 0
    pages = pages.with_clicks(np.where(pages.mask, clicks, 0).astype(np.uint8))
    extra = data.draw(st.integers(0, 3))
    garbage = data.draw(st.sampled_from([-1, 2**31 - 1, 0]))
    doc = np.pad(pages.doc, ((0, 0), (0, extra)), constant_values=garbage)
    click = np.pad(pages.click, ((0, 0), (0, extra)), constant_values=1)
    wide = Sessions(pages.query, doc, click, pages.length)
    doc[~wide.mask], click[~wide.mask] = garbage, 1
    np.testing.assert_array_equal(model.log_likelihood(wide), model.log_likelihood(pages))
    for verb in (model.predict_clicks, model.predict_conditional_clicks):
        np.testing.assert_array_equal(verb(wide)[:, :RANKS], verb(pages))
        assert not verb(wide)[~wide.mask].any()
    key = jax.random.key(5)
    drawn = model.sample(key, wide)
    np.testing.assert_array_equal(drawn.click[:, :RANKS], model.sample(key, pages).click)
    assert not drawn.click[~wide.mask].any()


@every_model
def test_drawn_patterns_have_their_probabilities(name: str) -> None:
    """Pearson's χ² over whole patterns of a page, and the same key drawing the same clicks."""
    model = random_model(name, 4, 0.7)
    page = random_pages(5, [RANKS])
    rows, keys = np.zeros(256, np.int64), [jax.random.key(seed) for seed in range(80)]
    drawn = [model.sample(key, page.take(rows)).click for key in keys]
    np.testing.assert_array_equal(model.sample(keys[0], page.take(rows[:100])).click, drawn[0][:100])
    p = np.exp(model.log_likelihood(every_pattern(page)))
    found = np.bincount(np.concatenate(drawn) @ (2 ** np.arange(RANKS)[::-1]), minlength=2**RANKS)
    times = found.sum()
    assert not found[p < 1e-9].any()
    possible = p >= 1e-9
    chi2 = ((found - times * p)[possible] ** 2 / (times * p[possible])).sum()
    freedom = possible.sum() - 1
    assert abs(chi2 - freedom) < 5 * np.sqrt(2 * freedom) + 5


@pytest.mark.parametrize("name", ["ncm", "cacm"], scope="module")
def test_long_pages_of_networks_are_marginalised_by_drawing(name: str) -> None:
    """Drawn marginals against the sum over all patterns, within five standard errors of 1/(2√n)."""
    exact, drawn = random_model(name, 7, 0.7), random_model(name, 7, 0.7, samples=31)
    pages = random_pages(8, [RANKS] * 200)
    error = drawn.predict_clicks(pages) - exact.predict_clicks(pages)
    assert np.abs(error).max() < 5 * 0.5 / np.sqrt(31)
    assert np.abs(error.mean()) < 5 * 0.5 / np.sqrt(31 * 200)
    assert np.abs(error).max() > 0


@pytest.mark.parametrize("name", ["ncm", "cacm"], scope="module")
def test_a_page_shown_again_is_predicted_as_before(name: str) -> None:
    """Whatever was clicked on it, and whatever its padding holds."""
    model = random_model(name, 7, 0.7)
    pages = random_pages(8, [RANKS, 2, 4, 2])
    rows = np.array([2, 0, 2, 1, 3, 3, 1])
    again = pages.take(rows)
    doc, click = again.doc.copy(), again.click.copy()
    doc[~again.mask] = np.arange((~again.mask).sum())
    click[:4] = again.mask[:4]
    again = Sessions(again.query, doc, click, again.length)
    np.testing.assert_allclose(model.predict_clicks(again), model.predict_clicks(pages)[rows], rtol=1e-6)


@pytest.mark.parametrize("name", ["ncm", "cacm"], scope="module")
def test_documents_on_top_are_the_relevance_of_networks(name: str) -> None:
    """The other places of the pages hold something too: what is below says nothing about the top."""
    model = random_model(name, 9)
    pages = random_pages(8, [RANKS] * DOCUMENTS)
    doc = pages.doc.copy()
    doc[:, 0] = np.arange(DOCUMENTS)
    below = Sessions.from_arrays(doc, pages.click, length=pages.length)
    np.testing.assert_allclose(model.relevance_values_, model.predict_clicks(below)[:, 0], rtol=1e-5)

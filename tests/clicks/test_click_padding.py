"""Padding changes nothing, in any model."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from click_worlds import RANKS, random_model, random_pages
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.clicks import MODELS, Sessions


@pytest.mark.parametrize("name", MODELS)
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
    extra = data.draw(st.integers(1, 3))
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

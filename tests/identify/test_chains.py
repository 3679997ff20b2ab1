"""What pages tell of chains, against the Jacobian of every page's click patterns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.identify.generic.chains import count_chain_null
from reference import plain_chain


@pytest.mark.parametrize("model", ["sdbn", "dbn", "ccm"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_null_dimensions_are_those_of_brute_force(model: str, data: st.DataObject) -> None:
    """A few pages of up to three of five items."""
    items = st.permutations(range(5)).flatmap(lambda p: st.integers(1, 3).map(lambda n: list(p[:n])))
    pages = data.draw(st.lists(items, min_size=1, max_size=4))
    names, _ = np.unique(np.concatenate(pages), return_inverse=True)
    code = {int(name): place for place, name in enumerate(names)}
    coded = [[code[x] for x in page] for page in pages]
    doc = np.zeros((len(pages), 3), np.int64)
    for row, page in enumerate(coded):
        doc[row, : len(page)] = page
    length = np.array([len(page) for page in coded])
    found = count_chain_null(model, doc, length, seed=0)
    expected = min(plain_chain.null_dimension(model, coded, len(names), seed) for seed in (0, 1))
    assert found.dimension + found.loose == expected


def test_a_page_alone_does_not_tell_who_tires() -> None:
    """Fixed ranks: γ and the attraction of documents lower down are one. Swapped ranks tell them apart."""
    fixed = np.array([[0, 1, 2]] * 5)
    assert count_chain_null("dbn", fixed, np.full(5, 3), 0)[:2] == (1, ["continuation"])
    swapped = np.array([[0, 1, 2], [1, 0, 2]])
    assert count_chain_null("dbn", swapped, np.full(2, 3), 0)[:2] == (0, [])

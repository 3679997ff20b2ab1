"""Items that stand for others have the same cells, and nobody else does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.equal_items import group_by_keys, group_equal_items

CELLS = st.lists(st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=3), min_size=1, max_size=30)


def arrays(items):
    offsets = np.concatenate(([0], np.cumsum([len(cells) for cells in items]))).astype(np.int64)
    flat = np.array([cell for cells in items for cell in cells], np.int64).reshape(-1, 3)
    return offsets, flat[:, 0].astype(np.int32), flat[:, 1].astype(np.uint32), flat[:, 2].astype(np.uint32)


@pytest.mark.parametrize("collide", [False, True])
@given(items=CELLS, seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_one_for_all_that_are_the_same(collide, items, seed):
    """Also where every hash is the same: then others are told apart by their cells."""
    chosen = np.random.default_rng(seed).permutation(len(items))[: len(items) // 2 + 1].astype(np.int64)
    offsets, factor, shown, clicks = arrays(items)
    first, code = (
        group_by_keys(offsets, factor, shown, clicks, chosen, np.full(len(chosen), 7, np.uint64))
        if collide
        else group_equal_items(offsets, factor, shown, clicks, chosen)
    )
    assert [items[i] for i in chosen] == [items[i] for i in first[code]]
    if not collide:
        assert len(first) == len({tuple(items[i]) for i in chosen})

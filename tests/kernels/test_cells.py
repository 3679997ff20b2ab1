"""Cell counting against a dictionary, with buffers small enough to be merged many times."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels import cells
from elute.kernels.cells import CellCounter, radix_sort

row = st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 1))
rows = st.lists(st.lists(row, max_size=30), max_size=8)


def compare(
    counter: CellCounter, items: int, impressions: Counter[tuple[int, int]], clicks: Counter[tuple[int, int]]
) -> None:
    offsets, factor, shown, clicked = counter.finish(items)
    assert len(offsets) == items + 1
    assert offsets[0] == 0
    assert offsets[-1] == len(factor)
    found = [(item, int(factor[c])) for item in range(items) for c in range(offsets[item], offsets[item + 1])]
    assert found == sorted(impressions)
    assert shown.tolist() == [impressions[cell] for cell in found]
    assert clicked.tolist() == [clicks[cell] for cell in found]


@settings(deadline=None, max_examples=150)
@given(rows, st.integers(1, 40))
def test_single_impressions(batches: list[list[tuple[int, int, int]]], buffer: int) -> None:
    total = sum(map(len, batches))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "BUFFER_ROWS", buffer)
        counter = CellCounter(minors=5, rows=max(total, 1), impressions=total)
    impressions: Counter[tuple[int, int]] = Counter()
    clicks: Counter[tuple[int, int]] = Counter()
    for batch in batches:
        item, factor, click = np.array(batch, np.int32).reshape(-1, 3).T
        counter.add(item, factor, click.astype(np.uint8))
        for i, f, c in batch:
            impressions[i, f] += 1
            clicks[i, f] += c
    compare(counter, 10, impressions, clicks)


@settings(deadline=None, max_examples=100)
@given(rows, st.sampled_from([1000, 2**33]))
def test_rows_that_are_counts(batches: list[list[tuple[int, int, int]]], scale: int) -> None:
    """Beyond 2³² impressions a count no longer fits in 32 bits."""
    counter = CellCounter(minors=5, rows=1, impressions=scale * 300)
    impressions: Counter[tuple[int, int]] = Counter()
    clicks: Counter[tuple[int, int]] = Counter()
    for batch in batches:
        item, factor, click = np.array(batch, np.int32).reshape(-1, 3).T
        shown = np.full(len(batch), scale, np.int64)
        counter.add(item, factor, click * shown, shown)
        for i, f, c in batch:
            impressions[i, f] += scale
            clicks[i, f] += c * scale
    compare(counter, 10, impressions, clicks)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3000)))
def test_radix_sort(values: list[int]) -> None:
    keys = np.array(values, np.uint64)
    bits = int(keys.max()).bit_length() if len(keys) else 1
    assert radix_sort(keys.copy(), np.empty_like(keys), bits).tolist() == sorted(values)

"""Radix sort against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.radix import radix_sort


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3000)))
def test_radix_sort(values: list[int]) -> None:
    keys = np.array(values, np.uint64)
    bits = int(keys.max()).bit_length() if len(keys) else 1
    assert radix_sort(keys.copy(), np.empty_like(keys), bits).tolist() == sorted(values)

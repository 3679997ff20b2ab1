"""Key tables against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elute.kernels.keys import KeyTable

keys = st.integers(0, 2**64 - 1) | st.integers(0, 40) | st.integers(0, 40).map(lambda k: k << 50)
batches = st.lists(st.lists(keys, max_size=60).map(lambda b: np.array(b, np.uint64)), max_size=6)


@settings(deadline=None, max_examples=150)
@given(batches)
def test_codes_are_those_of_a_dictionary(rows: list[NDArray[np.uint64]]) -> None:
    table = KeyTable()
    known: dict[int, int] = {}
    for batch in rows:
        before = len(known)
        codes, fresh = table.insert(batch)
        expected = [known.setdefault(int(key), len(known)) for key in batch]
        assert codes.tolist() == expected
        assert [expected[row] for row in fresh] == list(range(before, len(known)))
        assert len(table) == len(known)
    for batch in rows:
        assert table.find(batch).tolist() == [known[int(key)] for key in batch]
    absent = np.array([k for k in range(50) if k not in known], np.uint64)
    assert (table.find(absent) == -1).all()


def test_growth_keeps_every_key() -> None:
    """Far more keys than the first table has slots, all on few home slots at first."""
    table = KeyTable()
    many = np.arange(200_000, dtype=np.uint64) << np.uint64(13)
    for part in np.array_split(many, 7):
        table.insert(part)
    assert (table.find(many) == np.arange(200_000)).all()
    assert len(table) == 200_000

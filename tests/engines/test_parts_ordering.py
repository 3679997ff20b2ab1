"""The items of several runs in one order, against numpy's sort: places like dice, places that somebody made alike."""

from __future__ import annotations

import numpy as np
import pytest

from elute.engines.parts.ordering import find_starts, order_items

MOST = 2**64 - 1


def draw(seed: int, rows: int, places: int, items: int, queries: int) -> list[np.ndarray]:
    """Runs, each in the order of places, as parts have them."""
    rng = np.random.default_rng(seed)
    known = rng.integers(0, MOST, (places, 3), np.uint64, endpoint=True)
    known[:2, 0] = 0, MOST
    place, item, query = (rng.integers(0, size, rows) % places for size in (places, items, queries))
    found = np.column_stack((known[place, 0], known[item, 1], known[query, 2]))
    runs = np.array_split(found, 5)
    return list(np.concatenate([run[np.argsort(run[:, 0], kind="stable")] for run in runs]).T.copy())


@pytest.mark.parametrize("rows", [0, 1, 2, 500, 20_000])
@pytest.mark.parametrize(("places", "items", "queries"), [(2, 2, 2), (300, 2, 3), (15_000, 1, 1), (2, 15_000, 15_000)])
def test_as_numpy_sorts_them(rows: int, places: int, items: int, queries: int) -> None:
    place, item, query = draw(rows, rows, max(places, items), items, queries)
    for last in (None, query):
        order = order_items(place, item, last)
        keys = (item, place) if last is None else (query, item, place)
        np.testing.assert_array_equal(order, np.lexsort(keys))
        told = (place, item) if last is None else (place, item, query)
        ordered = np.column_stack(told)[order]
        new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)] if rows else np.zeros(0, np.bool_)
        starts = find_starts(order, place, item, query[:0] if last is None else query)
        np.testing.assert_array_equal(starts, [*np.flatnonzero(new), rows])


def test_made_up_places_take_no_longer_than_a_sort() -> None:
    """All items but one at two neighbouring places, in falling order: by looking at neighbours alone, 10¹⁰ steps."""
    rows = 200_000
    place = np.where(np.arange(rows) < rows // 2, np.uint64(6), np.uint64(5))
    place[-1] = MOST
    item = np.arange(rows, dtype=np.uint64)[::-1].copy()
    np.testing.assert_array_equal(order_items(place, item), np.lexsort((item, place)))

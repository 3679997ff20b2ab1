"""Flat directions against the null space of the information matrix, and the limits paper's worked example."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.identify.consistency import Consistency, check_consistency
from reference.plain_pbm import Table, design

A, B, C, D = range(4)
EXAMPLE = {(A, 0): 0.9, (B, 1): 0.64, (C, 2): 0.4, (D, 3): 0.05, (B, 0): 0.8, (A, 1): 0.72, (D, 2): 0.2, (C, 3): 0.1}
"""Section 6.1 of the limits paper: click probability by item and position."""


class Cells(NamedTuple):
    offsets: np.ndarray
    factor: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray


def sort(table: Table) -> Cells:
    rows = np.array(sorted(table), dtype=np.int64)
    offsets = np.searchsorted(rows[:, 0], np.arange(rows[-1, 0] + 2))
    return Cells(offsets, rows[:, 1].astype(np.int32), rows[:, 2].astype(np.uint32), rows[:, 3].astype(np.uint32))


def example(relevance_of_c: float, extra: dict[tuple[int, int], float] | None = None) -> Consistency:
    """The fit that has this R_C; all others follow from the click probabilities."""
    r = np.array([0.9, 0.8, relevance_of_c, relevance_of_c / 2])
    o = np.array([1, 0.8, 0.4 / relevance_of_c, 0.1 / relevance_of_c])
    seen = {**EXAMPLE, **(extra or {})}
    for (x, t), p in EXAMPLE.items():
        assert r[x] * o[t] == pytest.approx(p)
    return check_consistency(sort([(x, t, 100, round(100 * p)) for (x, t), p in seen.items()]), r, o, reference=0)


@pytest.mark.parametrize("relevance_of_c", [0.4, 0.5, 0.77, 1.0])
def test_the_papers_example_at_any_of_its_fits(relevance_of_c: float) -> None:
    found = example(relevance_of_c)
    assert (found.rank, found.parameters, found.consistent) == (6, 7, False)
    assert found.item_determined.tolist() == [True, True, False, False]
    assert found.factor_determined.tolist() == [True, True, False, False]
    (flat,) = found.flat
    assert flat.items.tolist() == [C, D]
    assert flat.factors.tolist() == [2, 3]
    assert np.allclose(flat.relevance_range, [[0.4, 0.2], [1, 0.5]])
    assert np.allclose(flat.propensity_range, [[0.4, 0.1], [1, 0.25]])


def test_the_example_in_words() -> None:
    found = example(0.5)
    assert found.sentence == (
        "Other relevances fit these clicks as well: 2 of 4 items are not determined, in 1 flat direction."
    )
    assert found.flat[0].sentence("ABCD".__getitem__, lambda t: f"position {t + 1}") == (
        "Known only up to one common scale: relevance of C from 0.4 to 1; D from 0.2 to 0.5 (divided by it), "
        "propensity of position 3 from 0.4 to 1; position 4 from 0.1 to 0.25 (multiplied by it)."
    )


@pytest.mark.parametrize("cell", [(C, 0), (C, 1), (D, 0), (D, 1)])
def test_one_ranking_more_determines_all(cell: tuple[int, int]) -> None:
    found = example(0.5, {cell: 0.3})
    assert (found.rank, found.parameters, found.consistent, found.flat) == (7, 7, True, [])


def test_the_design_has_the_papers_rank() -> None:
    for extra, rank in (([], 6), ([(C, 1, 1, 1)], 7)):
        x = design([(item, factor, 1, 1) for item, factor in EXAMPLE] + extra)
        assert np.linalg.matrix_rank(np.delete(x, 4, axis=1)) == rank == example(0.5, {c[:2]: 0.4 for c in extra}).rank


positive = st.floats(0.05, 1)


def renumber(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without gaps."""
    x, t = (np.unique([pair[side] for pair in pairs], return_inverse=True)[1].tolist() for side in (0, 1))
    return list(zip(x, t, strict=True))


tables = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=18).map(renumber)


@settings(max_examples=150, deadline=None)
@given(tables, st.data())
def test_flat_directions_are_the_null_space_of_the_information(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    items, factors = (1 + max(pair[side] for pair in pairs) for side in (0, 1))
    r = np.array(data.draw(st.lists(positive, min_size=items, max_size=items)))
    o = np.array(data.draw(st.lists(positive, min_size=factors, max_size=factors)))
    reference = data.draw(st.integers(0, factors - 1))
    table = [(x, t, 50, 1) for x, t in sorted(pairs)]
    found = check_consistency(sort(table), r, o, reference)
    p = np.array([min(r[x] * o[t], 0.98) for x, t, _, _ in table])
    x = np.delete(design(table), items + reference, axis=1)
    information = x.T @ np.diag(50 * p / (1 - p)) @ x
    values, vectors = np.linalg.eigh(information)
    null = vectors[:, values < 1e-9 * values.max()]
    assert null.shape[1] == len(found.flat) == found.parameters - found.rank
    moved = np.insert(np.abs(null).max(axis=1, initial=0) > 1e-6, items + reference, False)
    assert (moved == ~np.concatenate((found.item_determined, found.factor_determined))).all()
    for flat in found.flat:
        direction = np.zeros(items + factors)
        direction[flat.items], direction[items + flat.factors] = -1, 1
        assert np.allclose(information @ np.delete(direction, items + reference), 0)


@given(tables, st.data())
def test_ranges_are_as_wide_as_probabilities_allow(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    items, factors = (1 + max(pair[side] for pair in pairs) for side in (0, 1))
    r = np.array(data.draw(st.lists(positive, min_size=items, max_size=items)))
    o = np.array(data.draw(st.lists(positive, min_size=factors, max_size=factors)))
    for flat in check_consistency(sort([(x, t, 9, 1) for x, t in pairs]), r, o).flat:
        if not flat.informed:
            continue
        low, high = flat.relevance_range
        least, most = flat.propensity_range
        assert high.max() == pytest.approx(1)
        assert most.max() == pytest.approx(1)
        for x, t in pairs:
            if x in flat.items:
                i, j = np.flatnonzero(flat.items == x)[0], np.flatnonzero(flat.factors == t)[0]
                assert high[i] * least[j] == pytest.approx(r[x] * o[t])
                assert low[i] * most[j] == pytest.approx(r[x] * o[t])


def free(found: Consistency) -> tuple[list[list[int]], list[list[int]]]:
    return [flat.items.tolist() for flat in found.flat], [flat.factors.tolist() for flat in found.flat]


def test_a_factor_without_clicks_is_known_and_says_nothing() -> None:
    """Item 1 was shown under factor 1 alone, which nobody clicks: anything goes for it. Item 0 shows that o is 0."""
    found = check_consistency(sort([(0, 0, 9, 3), (0, 1, 9, 0), (1, 1, 9, 0)]), np.array([0.3, 0]), np.array([1.0, 0]))
    assert free(found) == ([[1]], [[]])
    assert found.factor_determined.all()
    assert (found.rank, found.parameters, found.consistent) == (2, 3, False)
    assert np.array(found.flat[0].relevance_range).tolist() == [[0], [1]]
    assert found.flat[0].sentence("ab".__getitem__, str) == (
        "Nothing is known about the relevance of b: all its factors have propensity 0."
    )


def test_an_item_without_clicks_is_known_and_says_nothing() -> None:
    """Item 1 is irrelevant under factor 0, so factor 1, under which only it was shown, can have any propensity."""
    found = check_consistency(
        sort([(0, 0, 9, 3), (1, 0, 9, 0), (1, 1, 9, 0)]), np.array([0.3, 0]), np.array([1.0, 0.5])
    )
    assert free(found) == ([[]], [[1]])
    assert found.consistent
    assert (found.rank, found.parameters) == (2, 3)
    assert "propensity of 1: all its items" in found.flat[0].sentence(str, str)


def test_cells_without_impressions_do_not_link() -> None:
    table = [(0, 0, 9, 3), (0, 1, 0, 0), (1, 1, 9, 3)]
    assert free(check_consistency(sort(table), np.array([0.3, 0.4]), np.array([1.0, 0.8]))) == ([[1]], [[1]])


def test_no_scale_at_all_is_said() -> None:
    """Items 1 and 2 with r·o = 1.2 for a pair never shown: no scale makes both probabilities."""
    table = [(0, 0, 9, 3), (1, 1, 9, 3), (1, 2, 9, 3), (2, 1, 9, 3)]
    found = check_consistency(sort(table), np.array([0.3, 0.5, 1.5]), np.array([1.0, 0.3, 0.8]), reference=0)
    assert found.flat[0].scale == pytest.approx((1.5, 1.25))
    assert "at no scale are all of them probabilities" in found.flat[0].sentence(str, str)


@pytest.mark.parametrize(
    ("r", "o", "reference", "message"),
    [
        ([0.3], [1, 1], None, "1 relevances for 2 items"),
        ([0.3, 0.3], [1], None, "1 propensities, fewer than there are factors"),
        ([0.3, np.nan], [1, 1], None, "a relevance is negative or not a number"),
        ([0.3, 0.3], [1, -1], None, "a propensity is negative or not a number"),
        ([0.3, 0.3], [1, 0], None, "1 clicked cells the probability 0"),
        ([0.3, 0.3], [1, 1], 2, "factor 2 cannot be the reference"),
    ],
)
def test_what_is_not_a_fit_is_refused(r: list[float], o: list[float], reference: int | None, message: str) -> None:
    with pytest.raises(EluteError, match=message):
        check_consistency(sort([(0, 0, 9, 3), (1, 1, 9, 3)]), np.array(r), np.array(o), reference)

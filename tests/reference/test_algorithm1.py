"""The reference itself, on graphs small enough to work by hand."""

from __future__ import annotations

from typing import Any

import pytest

from reference.algorithm1 import identifiability_graph, reference_check, reference_explore

Rows = list[dict[str, Any]]


def shown(*cells: tuple[Any, Any, Any], click: Any = 0) -> Rows:
    """One row for each (query, doc, position)."""
    return [{"q": q, "d": d, "p": p, "c": click} for q, d, p in cells]


def check(rows: Rows, item: tuple[str, ...] = ("q", "d"), bias: tuple[str, ...] = ("p",)) -> dict[str, Any]:
    """The reference with this file's column names."""
    return reference_check(rows, list(item), list(bias), "q", "c")


def test_figure_1_left_is_connected() -> None:
    """Feature 1 joins factors 1 and 2, feature 3 joins 2 and 3; feature 2 joins nothing."""
    rows = shown(("q", 1, 1), ("q", 1, 2), ("q", 2, 1), ("q", 3, 2), ("q", 3, 3))
    assert check(rows) == {
        "impressions": 5,
        "clicks": 0,
        "items": 3,
        "factors": 3,
        "cells": 5,
        "queries": 1,
        "recoverable": True,
        "components": 1,
        "component_sizes": [3],
        "rankable_queries": 1,
        "rankable_share": 1.0,
        "comparable_pairs_share": 1.0,
        "impressions_in_largest_share": 1.0,
    }
    graph = identifiability_graph(rows, ["q", "d"], ["p"])
    assert {frozenset(edge) for edge in graph.edges} == {
        frozenset({(1,), (2,)}),
        frozenset({(2,), (3,)}),
    }


def test_figure_1_right_has_an_isolated_factor() -> None:
    """Feature 3 is shown under factor 3 only, so that nothing compares it with features 1 and 2."""
    rows = shown(("q", 1, 1), ("q", 1, 2), ("q", 2, 1), ("q", 3, 3))
    assert check(rows) == {
        "impressions": 4,
        "clicks": 0,
        "items": 3,
        "factors": 3,
        "cells": 4,
        "queries": 1,
        "recoverable": False,
        "components": 2,
        "component_sizes": [2, 1],
        "rankable_queries": 0,
        "rankable_share": 0.0,
        "comparable_pairs_share": 1 / 3,
        "impressions_in_largest_share": 3 / 4,
    }


def test_example_1_every_pair_under_its_own_factor() -> None:
    """All isolated, and more components than sizes reported."""
    verdict = check(shown(*[("q", n, n) for n in range(25)]))
    assert verdict["components"] == 25
    assert verdict["component_sizes"] == [1] * 20
    assert verdict["comparable_pairs_share"] == 0.0
    assert verdict["impressions_in_largest_share"] == 1 / 25


def test_one_row() -> None:
    """One factor is connected to itself, and no pair of items is left unranked."""
    verdict = check(shown(("q", "d", 1), click=1))
    assert (verdict["recoverable"], verdict["components"], verdict["component_sizes"]) == (True, 1, [1])
    assert (verdict["rankable_share"], verdict["comparable_pairs_share"]) == (1.0, 1.0)
    assert (verdict["impressions"], verdict["clicks"], verdict["cells"]) == (1, 1, 1)


def test_an_item_under_four_factors_joins_them_all() -> None:
    """The complete graph of four factors: six edges."""
    rows = shown(*[("q", "d", p) for p in range(4)])
    assert identifiability_graph(rows, ["q", "d"], ["p"]).number_of_edges() == 6
    assert check(rows)["component_sizes"] == [4]


def test_rankable_queries_in_a_log_that_is_not_recoverable() -> None:
    """Components {1, 2} and {3, 4}. Query a lies in the first, b in the second, c in both.

    Pairs: a has 1 (comparable), b has 1 (comparable), c has 3 items, c1 and c2 in the first and c3 in the
    second, hence 3 pairs of which 1 is comparable: 3 of 5 in all.
    """
    rows = shown(
        ("a", "a1", 1), ("a", "a1", 2), ("a", "a2", 2),
        ("b", "b1", 3), ("b", "b1", 4), ("b", "b2", 3),
        ("c", "c1", 1), ("c", "c2", 2), ("c", "c3", 4),
    )  # fmt: skip
    verdict = check(rows)
    assert (verdict["queries"], verdict["items"], verdict["cells"]) == (3, 7, 9)
    assert verdict["component_sizes"] == [2, 2]
    assert (verdict["rankable_queries"], verdict["rankable_share"]) == (2, 2 / 3)
    assert verdict["comparable_pairs_share"] == 3 / 5
    # Equally many factors: the component with more impressions (5 of 9) is the largest.
    assert verdict["impressions_in_largest_share"] == 5 / 9


def test_largest_is_by_factors_before_impressions() -> None:
    """Factors 1 and 2 carry 2 impressions, factor 3 alone carries 8."""
    rows = shown(("q", "a", 1), ("q", "a", 2), *[("q", "b", 3)] * 8)
    verdict = check(rows)
    assert verdict["component_sizes"] == [2, 1]
    assert verdict["impressions_in_largest_share"] == 2 / 10
    assert (verdict["impressions"], verdict["cells"]) == (10, 3)


def test_an_item_shared_by_queries() -> None:
    """Doc d under position 1 for query a and 2 for query b joins them only if the doc is the item."""
    rows = shown(("a", "d", 1), ("b", "d", 2))
    by_pair, by_doc = check(rows), check(rows, item=("d",))
    assert (by_pair["items"], by_pair["components"], by_pair["rankable_queries"]) == (2, 2, 2)
    assert (by_doc["items"], by_doc["components"], by_doc["rankable_queries"]) == (1, 1, 2)


def test_query_as_a_bias_column_breaks_the_graph() -> None:
    """With (query, position) as factor no doc links two queries; position alone is connected."""
    rows = shown(("a", "x", 1), ("a", "x", 2), ("b", "y", 1), ("b", "y", 2), ("b", "z", 3), ("c", "z", 3))
    rows += shown(("c", "w", 3), ("c", "w", 1))
    with_query = check(rows, bias=("q", "p"))
    # (a,1)-(a,2); (b,1)-(b,2); (b,3) alone; (c,3)-(c,1).
    assert (with_query["factors"], with_query["component_sizes"]) == (7, [2, 2, 2, 1])
    assert (with_query["rankable_queries"], with_query["queries"]) == (2, 3)
    subsets = reference_explore(rows, ["q", "d"], ["q", "p"], "q", "c")
    assert subsets == [
        # Items of one query always share the factor (query,): each query is a component, rankable.
        {"bias": ["q"], "factors": 3, "components": 3, "recoverable": False, "rankable_share": 1.0},
        {"bias": ["p"], "factors": 3, "components": 1, "recoverable": True, "rankable_share": 1.0},
        {"bias": ["q", "p"], "factors": 7, "components": 4, "recoverable": False, "rankable_share": 2 / 3},
    ]


def test_rows_without_an_id_are_dropped() -> None:
    """Each of the three roles; a missing value in another column is no matter."""
    rows = shown((None, "d", 1), ("q", None, 2), ("q", "d", None), ("q", "d", 4))
    verdict = check(rows)
    assert (verdict["impressions"], verdict["factors"], verdict["items"]) == (1, 1, 1)
    # With the query as the item, the second row is complete.
    assert check(rows, item=("q",))["factors"] == 2
    with pytest.raises(ValueError, match="no row"):
        check(rows[:3])
    with pytest.raises(ValueError, match="no row"):
        check([])


def test_explore_drops_the_same_rows_for_every_subset() -> None:
    """The row without a device counts for no subset, not even for the one of position alone."""
    rows = [
        {"q": "q", "d": "d", "p": 1, "v": "phone", "c": 0},
        {"q": "q", "d": "d", "p": 2, "v": None, "c": 0},
    ]
    subsets = reference_explore(rows, ["q", "d"], ["p", "v"], "q", "c")
    assert [(s["bias"], s["factors"]) for s in subsets] == [(["p"], 1), (["v"], 1), (["p", "v"], 1)]


def test_clicks_as_booleans_and_as_counts() -> None:
    """Booleans are 0 and 1; with an impressions column both are counts."""
    assert check(shown(("q", "d", 1), ("q", "d", 1), click=True))["clicks"] == 2
    rows: Rows = [
        {"q": "q", "d": "x", "p": 1, "c": 3, "n": 10},
        {"q": "q", "d": "x", "p": 1, "c": 2, "n": 5},
        {"q": "q", "d": "y", "p": 2, "c": 0, "n": 45},
    ]
    verdict = reference_check(rows, ["q", "d"], ["p"], "q", "c", impressions="n")
    assert (verdict["impressions"], verdict["clicks"], verdict["cells"]) == (60, 5, 2)
    # Two components of one factor each: the tie goes to the one with 45 of 60 impressions.
    assert verdict["impressions_in_largest_share"] == 45 / 60


def test_values_that_only_look_alike_stay_apart() -> None:
    """'007' and '7', '' and ' ', and pairs whose concatenations agree are different items."""
    rows = shown(("a", "bc", 1), ("ab", "c", 2), ("q", "007", 3), ("q", "7", 4), ("", " ", 5), (" ", "", 6))
    assert check(rows)["items"] == 6
    assert check(rows)["components"] == 6

"""Algorithm 1 of the identifiability paper (Appendix B.1), written plainly over a list of row dicts.

Every item's factors are joined to a complete graph, edge by edge, and networkx finds the components. Slow
on purpose: nothing here shares an idea with the implementation that it is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import networkx as nx

Row = Mapping[str, Any]
SomeRow = TypeVar("SomeRow", bound=Row)
Key = tuple[Any, ...]

MAX_COMPONENT_SIZES = 20


def complete_rows(rows: Sequence[SomeRow], item: Sequence[str], bias: Sequence[str], query: str) -> list[SomeRow]:
    """The rows that have a value in every item, bias and query column."""
    return [row for row in rows if all(row[column] is not None for column in [*item, *bias, query])]


def key(row: Row, columns: Sequence[str]) -> Key:
    """The values of some columns of a row: an item, or a factor."""
    return tuple(row[column] for column in columns)


def identifiability_graph(rows: Sequence[Row], item: Sequence[str], bias: Sequence[str]) -> nx.Graph:
    """Lines 1 to 15 of Algorithm 1: factors as nodes, an edge where an item was shown under both."""
    factors_of: dict[Key, set[Key]] = {}
    for row in rows:
        x, t = key(row, item), key(row, bias)
        if x not in factors_of:
            factors_of[x] = {t}
        else:
            factors_of[x] = factors_of[x] | {t}

    graph = nx.Graph()
    for row in rows:
        graph.add_node(key(row, bias))
    for factors in factors_of.values():
        for s, t in combinations(factors, 2):
            graph.add_edge(s, t)
    return graph


def reference_check(
    rows: Sequence[Row],
    item: Sequence[str],
    bias: Sequence[str],
    query: str,
    click: str,
    impressions: str | None = None,
) -> dict[str, Any]:
    """What `elute check` must say about these rows.

    Without `impressions` a row is one impression and `click` is a boolean or 0/1; with it both are counts.
    Raises ValueError where no row has all its ids: then there is nothing to say.
    """
    kept = complete_rows(rows, item, bias, query)
    if not kept:
        raise ValueError("no row has a value in every item, bias and query column")

    graph = identifiability_graph(kept, item, bias)
    components = [set(component) for component in nx.connected_components(graph)]

    def shown(row: Row) -> int:
        return 1 if impressions is None else int(row[impressions])

    # An item belongs to the component of its factors, all of which lie in one component.
    component_of: dict[Key, int] = {}
    for row in kept:
        for number, component in enumerate(components):
            if key(row, bias) in component:
                x = key(row, item)
                if component_of.setdefault(x, number) != number:
                    raise AssertionError(f"item {x!r} lies in two components")

    items_of: dict[Any, set[Key]] = {}
    for row in kept:
        items_of.setdefault(row[query], set()).add(key(row, item))

    rankable = 0
    pairs = 0
    comparable = 0
    for items in items_of.values():
        if len({component_of[x] for x in items}) == 1:
            rankable += 1
        for x, y in combinations(items, 2):
            pairs += 1
            if component_of[x] == component_of[y]:
                comparable += 1

    total = sum(shown(row) for row in kept)
    size_and_impressions = [
        (len(component), sum(shown(row) for row in kept if key(row, bias) in component)) for component in components
    ]
    _, impressions_in_largest = max(size_and_impressions)

    return {
        "impressions": total,
        "clicks": sum(int(row[click]) for row in kept),
        "items": len({key(row, item) for row in kept}),
        "factors": len({key(row, bias) for row in kept}),
        "cells": len({(key(row, item), key(row, bias)) for row in kept}),
        "queries": len(items_of),
        "recoverable": nx.is_connected(graph),
        "components": len(components),
        "component_sizes": sorted((len(c) for c in components), reverse=True)[:MAX_COMPONENT_SIZES],
        "rankable_queries": rankable,
        "rankable_share": rankable / len(items_of),
        "comparable_pairs_share": comparable / pairs if pairs else 1.0,
        "impressions_in_largest_share": impressions_in_largest / total,
    }


def reference_explore(
    rows: Sequence[Row],
    item: Sequence[str],
    bias: Sequence[str],
    query: str,
    click: str,
    impressions: str | None = None,
) -> list[dict[str, Any]]:
    """What `elute check --explore` must say: the verdict under every non-empty subset of the bias columns.

    All subsets see the same rows, those complete in all the bias columns, so that their verdicts differ by
    the columns alone.
    """
    kept = complete_rows(rows, item, bias, query)
    subsets = []
    for size in range(1, len(bias) + 1):
        for subset in combinations(bias, size):
            verdict = reference_check(kept, item, subset, query, click, impressions)
            subsets.append(
                {
                    "bias": list(subset),
                    "factors": verdict["factors"],
                    "components": verdict["components"],
                    "recoverable": verdict["recoverable"],
                    "rankable_share": verdict["rankable_share"],
                }
            )
    return subsets

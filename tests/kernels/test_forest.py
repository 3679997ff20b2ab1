"""Forests merge in any order and any grouping: a commutative monoid, which is why pieces may be counted anywhere."""

from __future__ import annotations

from random import Random

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.forest import connect_cells, group_forest, merge_edges, spanning_edges
from elute.kernels.unionfind import singletons

N = 12
Pairs = list[tuple[int, int]]
links = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=15)


def forest(pairs: Pairs) -> np.ndarray:
    return merge_edges(singletons(N), np.array(pairs, np.int32).reshape(-1, 2))


def both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return merge_edges(a, spanning_edges(b))


def plainly(pairs: Pairs) -> list[int]:
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(N))
    smallest = {node: min(part) for part in nx.connected_components(graph) for node in part}
    return [smallest[node] for node in range(N)]


@settings(deadline=None)
@given(links)
def test_a_forest_is_the_graphs_components_in_the_fewest_edges(pairs: Pairs) -> None:
    root = forest(pairs)
    assert root.tolist() == plainly(pairs)
    assert len(spanning_edges(root)) == N - len(set(plainly(pairs)))
    assert np.array_equal(both(singletons(N), root), root)


@settings(deadline=None)
@given(links, links, links)
def test_merging_is_associative_and_commutative(one: Pairs, two: Pairs, three: Pairs) -> None:
    a, b, c = forest(one), forest(two), forest(three)
    expected = plainly([*one, *two, *three])
    for merged_in_some_way in (both(both(a, b), c), both(a, both(b, c)), both(both(c, a), b), both(c, both(b, a))):
        assert merged_in_some_way.tolist() == expected


@settings(deadline=None)
@given(st.lists(links, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_order_and_grouping_of_many(pieces: list[Pairs], random: Random) -> None:
    forests = [forest(piece) for piece in pieces]
    while len(forests) > 1:
        random.shuffle(forests)
        forests.append(both(forests.pop(), forests.pop()))
    assert forests[0].tolist() == plainly([pair for piece in pieces for pair in piece])


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, N - 1), max_size=4), max_size=8), st.lists(st.integers(0, N - 1), min_size=N))
def test_items_join_factors_and_groups_of_them(items: list[list[int]], labels: list[int]) -> None:
    """Also where an item, and be it the last, has no cells."""
    offsets = np.cumsum([0, *map(len, items)])
    factor = np.array([one for item in items for one in item], np.int32)
    root = connect_cells(offsets, factor, N)
    assert root.tolist() == plainly([(item[0], one) for item in items for one in item])
    group = np.unique(labels[:N], return_inverse=True)[1].astype(np.int32)
    n = int(group.max()) + 1
    joined = [(int(group[item[0]]), int(group[one])) for item in items for one in item]
    assert group_forest(root, group).tolist() == plainly(joined)[:n]

"""Union–find against networkx; the order of links never matters."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.unionfind import find_roots, link, singletons

edges = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=25)


@settings(deadline=None, max_examples=200)
@given(edges, st.randoms(use_true_random=False))
def test_roots_are_the_smallest_members_whatever_the_order(
    links: list[tuple[int, int]], shuffler: random.Random
) -> None:
    graph = nx.Graph(links)
    graph.add_nodes_from(range(15))
    expected = np.empty(15, int)
    for members in nx.connected_components(graph):
        expected[list(members)] = min(members)
    for _ in range(3):
        parent = singletons(15)
        for a, b in links:
            link(parent, a, b)
        assert find_roots(parent).tolist() == expected.tolist()
        shuffler.shuffle(links)

"""Streaming connectivity against networkx on the bipartite graph, in any order and any batches."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.connector import Connector

FACTORS = 12
pairs = st.lists(st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 9), st.integers(0, FACTORS - 1)), max_size=60)


def components(rows: list[tuple[int, int]]) -> list[int]:
    graph = nx.Graph((("item", item), factor) for item, factor in rows)
    graph.add_nodes_from(range(FACTORS))
    smallest = [0] * FACTORS
    for members in nx.connected_components(graph):
        factors = [member for member in members if isinstance(member, int)]
        for factor in factors:
            smallest[factor] = min(factors)
    return smallest


@settings(deadline=None, max_examples=200)
@given(pairs, st.integers(1, 30), st.randoms(use_true_random=False))
def test_roots_are_the_smallest_factors_of_the_components(
    rows: list[tuple[int, int]], size: int, shuffler: random.Random
) -> None:
    expected = components(rows)
    for _ in range(2):
        connector = Connector(FACTORS)
        for begin in range(0, len(rows), size):
            item, factor = zip(*rows[begin : begin + size], strict=True)
            connector.add(np.array(item, np.uint64), np.array(factor, np.int32))
        assert connector.roots().tolist() == expected
        assert connector.components == len(set(expected))
        shuffler.shuffle(rows)


def test_a_table_that_grows_forgets_nothing() -> None:
    """100,000 items under factor 0, then one of the first of them under factor 1."""
    connector = Connector(2)
    for part in np.array_split(np.arange(100_000, dtype=np.uint64) << np.uint64(12), 9):
        connector.add(part, np.zeros(len(part), np.int32))
    assert connector.components == 2
    connector.add(np.array([3 << 12], np.uint64), np.array([1], np.int32))
    assert connector.components == 1

"""The error bound of merging: worked by hand, and against networkx paths (against exact fits: `test_distortion`)."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.repair.distortion.bounds import merge_bound


def test_two_components_by_hand():
    """Relevance is exact in component 0, so o' = .34 there and of the pair: |0.34 - 0.28| / 0.34 (Proposition 2)."""
    bound = merge_bound(np.array([[1, 2]]), np.array([0, 0, 1]), np.array([0.68, 0.34, 0.28]), 0)
    assert bound.weights == pytest.approx([0.06 / 0.34])
    assert bound.diameter == pytest.approx(0.06 / 0.34)
    assert bound.shares == pytest.approx([1.0])
    assert bound.scales == pytest.approx([1, 0.28 / 0.34])
    assert bound.log_ratios == pytest.approx([np.log(0.34 / 0.28)])


def test_star_of_four_components_by_hand():
    """Arms of 0.1, 0.3 and 0.2 from component 0: the longest path uses the two longest arms."""
    propensity = np.array([1.0, 0.9, 0.7, 1.2])
    bound = merge_bound(np.array([[0, 1], [0, 2], [0, 3]]), np.arange(4), propensity, 0)
    assert bound.weights == pytest.approx([0.1, 0.3, 0.2])
    assert bound.diameter == pytest.approx(0.5)
    assert bound.shares == pytest.approx([0.0, 0.6, 0.4])


def random_plan(rng, k):
    """K components of two factors each, joined by a random tree."""
    component = np.repeat(np.arange(k), 2)
    earlier = [int(rng.integers(0, c)) for c in range(1, k)]
    pairs = 2 * np.column_stack((earlier, np.arange(1, k))).astype(np.int64) + rng.integers(0, 2, (k - 1, 2))
    return pairs, component, rng.uniform(0.05, 1, 2 * k)


@given(st.integers(1, 15), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_diameter_is_the_longest_of_all_paths(k, seed):
    rng = np.random.default_rng(seed)
    pairs, component, propensity = random_plan(rng, k)
    bound = merge_bound(pairs, component, propensity, int(rng.integers(0, k)))
    merged = propensity / bound.scales[component]
    assert merged[pairs[:, 0]] == pytest.approx(merged[pairs[:, 1]])
    tree = nx.Graph()
    tree.add_nodes_from(range(k))
    for a, b in pairs:
        weight = abs(propensity[a] - propensity[b]) / merged[a]
        tree.add_edge(component[a], component[b], weight=weight)
    lengths = dict(nx.all_pairs_dijkstra_path_length(tree))
    assert bound.diameter == pytest.approx(max(max(row.values()) for row in lengths.values()))
    on_path = bound.shares > 0
    assert bound.shares == pytest.approx(np.where(on_path, bound.weights, 0) / (bound.diameter or 1))
    path = nx.Graph([(component[a], component[b]) for a, b in pairs[on_path]])
    if k > 1:
        assert bound.shares.sum() == pytest.approx(1)
        assert nx.is_connected(path)
        assert max(dict(path.degree).values()) <= 2


def test_pairs_that_are_no_tree_are_refused():
    with pytest.raises(ValueError, match="spanning tree"):
        merge_bound(np.array([[0, 1], [1, 0]]), np.arange(3), np.ones(3), 0)
    with pytest.raises(ValueError, match="propensity"):
        merge_bound(np.array([[0, 1]]), np.arange(2), np.zeros(2), 0)

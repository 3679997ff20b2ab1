"""The merge tree against networkx on the complete graph of components and against all spanning trees."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.repair.merge import find_minimum_merges


@st.composite
def worlds(draw, most_components=12, most_factors=40):
    """Features on a coarse lattice (ties and duplicates abound) or spread out, and components."""
    k = draw(st.integers(1, most_components))
    n = draw(st.integers(k, most_factors))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    axes = draw(st.integers(1, 4))
    component = rng.permutation(np.concatenate((np.arange(k), rng.integers(0, k, n - k))))
    if draw(st.booleans()):
        features = rng.integers(0, draw(st.integers(1, 4)), (n, axes)).astype(float)
    else:
        features = rng.normal(size=(n, axes))
    return features, component


def component_graph(features, component):
    """Complete graph of components weighted by the smallest distance of their factors (Eq. 7 and 8)."""
    graph = nx.Graph()
    graph.add_nodes_from(range(component.max() + 1))
    for a, b in combinations(range(len(features)), 2):
        one, two = component[a], component[b]
        cost = np.linalg.norm(features[a] - features[b])
        if one != two and cost < graph.get_edge_data(one, two, {"weight": np.inf})["weight"]:
            graph.add_edge(one, two, weight=cost)
    return graph


def kruskal(features, component):
    """The one tree that is minimal in the order (squared cost, smaller factor, larger factor)."""
    edges = sorted(
        (((features[a] - features[b]) ** 2).tolist(), a, b)
        for a, b in combinations(range(len(features)), 2)
        if component[a] != component[b]
    )
    edges = sorted((sum(squares, 0.0), a, b) for squares, a, b in edges)
    forest = nx.utils.UnionFind(range(component.max() + 1))
    tree = []
    for _, a, b in edges:
        if forest[component[a]] != forest[component[b]]:
            forest.union(component[a], component[b])
            tree.append((a, b))
    return tree


def joins_everything(pairs, component):
    graph = nx.Graph()
    graph.add_nodes_from(range(component.max() + 1))
    graph.add_edges_from((component[a], component[b]) for a, b in pairs)
    return nx.is_connected(graph)


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_cost_of_networkx_tree(world):
    features, component = world
    pairs, costs = find_minimum_merges(features, component)
    tree = nx.minimum_spanning_tree(component_graph(features, component))
    assert pairs.shape == (component.max(), 2)
    assert costs.sum() == pytest.approx(tree.size(weight="weight"), abs=1e-9)
    assert costs == pytest.approx(np.linalg.norm(features[pairs[:, 0]] - features[pairs[:, 1]], axis=1))
    assert joins_everything(pairs, component)


@given(worlds(most_components=5, most_factors=12))
@settings(max_examples=50, deadline=None)
def test_no_spanning_tree_is_cheaper(world):
    features, component = world
    graph = component_graph(features, component)
    k = component.max() + 1
    cheapest = min(
        sum(graph.edges[edge]["weight"] for edge in edges)
        for edges in combinations(graph.edges, k - 1)
        if nx.is_connected(nx.Graph([*edges, *((c, c) for c in range(k))]))
    )
    assert find_minimum_merges(features, component)[1].sum() == pytest.approx(cheapest, abs=1e-9)


@given(worlds(most_factors=60))
@settings(max_examples=150, deadline=None)
def test_ties_go_to_the_smaller_factors(world):
    features, component = world
    pairs, costs = find_minimum_merges(features, component)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert (np.diff(costs) >= 0).all()
    assert pairs.tolist() == [list(edge) for edge in kruskal(features, component)]


@given(worlds(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_labels_of_components_do_not_matter(world, seed):
    features, component = world
    renamed = np.random.default_rng(seed).permutation(component.max() + 1)[component]
    assert find_minimum_merges(features, component)[0].tolist() == find_minimum_merges(features, renamed)[0].tolist()


def test_many_points_across_leaves_and_positions():
    """Enough factors for a deep tree: ten positions times contexts, one large component, many ties."""
    rng = np.random.default_rng(1)
    contexts = rng.normal(0, 0.35, (60, 10))
    features = np.array([[*contexts[c], 10.0 * p] for c in range(60) for p in range(10)])
    component = np.where(rng.random(600) < 0.4, 0, np.arange(600))
    component = np.unique(component, return_inverse=True)[1]
    pairs, costs = find_minimum_merges(features, component)
    tree = nx.minimum_spanning_tree(component_graph(features, component))
    assert costs.sum() == pytest.approx(tree.size(weight="weight"), rel=1e-12)
    assert pairs.tolist() == [list(edge) for edge in kruskal(features, component)]


@pytest.mark.parametrize("k", [2, 20, 225])
def test_ties_of_a_shuffled_lattice(k):
    """Every point has neighbours at distance 1 in other leaves, and any of them may have the smaller name."""
    rng = np.random.default_rng(k)
    features = rng.permutation([[float(x), float(y)] for x in range(15) for y in range(15)])
    component = rng.permutation(np.concatenate((np.arange(k), rng.integers(0, k, 225 - k))))
    pairs, _ = find_minimum_merges(features, component)
    assert pairs.tolist() == [list(edge) for edge in kruskal(features, component)]


def test_thousands_of_equal_factors_cost_nothing():
    features = np.repeat([[0.0, 1.0], [3.0, 5.0]], 5_000, axis=0)
    pairs, costs = find_minimum_merges(features, np.arange(10_000))
    assert np.count_nonzero(costs) == 1
    assert costs[-1] == 5.0
    assert pairs[-1].tolist() == [0, 5_000]
    assert pairs[:3].tolist() == [[0, 1], [0, 2], [0, 3]]


def test_distances_beyond_the_range_of_squares_still_join():
    pairs, _ = find_minimum_merges(np.array([[0.0], [1e200], [-1e200], [1e-200]]), np.arange(4))
    assert joins_everything(pairs, np.arange(4))


def test_features_must_be_numbers():
    with pytest.raises(ValueError, match="finite"):
        find_minimum_merges(np.array([[0.0], [np.nan]]), np.arange(2))

"""What merging does to relevance: against exact fits by linear algebra, all pairs of items and all spanning trees."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.repair.distortion import centre
from elute.repair.distortion.bounds import merge_bound
from elute.repair.distortion.centre import find_least_diameter
from elute.repair.distortion.flips import find_flips
from elute.repair.distortion.linkage import link_all
from elute.repair.distortion.paths import (
    distance,
    find_log_scales,
    find_longest_path,
    measure_distances,
    span_components,
)
from elute.repair.merge import find_minimum_merges
from reference.plain_distortion import (
    component_tree,
    flips_by_all_pairs,
    measure_tree,
    solve_merged,
    spanning_trees,
)


def random_world(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]], int]:
    """A random tree of pairs over k components of 1 to 3 factors: pairs, component by factor, cells, items. Each
    component has an item that links its factors, and one of its first factor only."""
    component = np.repeat(np.arange(k), rng.integers(1, 4, k))
    members = [np.flatnonzero(component == c) for c in range(k)]
    pairs = [
        (rng.choice(members[int(rng.integers(0, c))]), rng.choice(members[c])) if rng.random() < 0.5
        else (rng.choice(members[c]), rng.choice(members[int(rng.integers(0, c))]))
        for c in range(1, k)
    ]  # fmt: skip
    cells = [(c, int(factor)) for c in range(k) for factor in members[c]]
    cells += [(k + c, int(members[c][0])) for c in range(k)]
    return np.array(pairs, np.int64).reshape(-1, 2), component, cells, 2 * k


def spread_pairs(
    rng: np.random.Generator, pairs: np.ndarray, component: np.ndarray, log_ratio: np.ndarray
) -> np.ndarray:
    """Log propensities with given log o(a) - log o(b); merged factors hang together in trees, others are anything."""
    forest = nx.Graph()
    forest.add_nodes_from(range(len(component)))
    for number, (a, b) in enumerate(pairs):
        forest.add_edge(int(a), int(b), number=number)
    out = np.full(len(component), np.nan)
    for group in nx.connected_components(forest):
        root = min(group)
        out[root] = rng.normal()
        for here, there in nx.bfs_edges(forest, root):
            number = forest.edges[here, there]["number"]
            step = log_ratio[number] if pairs[number][0] == there else -log_ratio[number]
            out[there] = out[here] + step
    return out


def aligned(pairs: np.ndarray, component: np.ndarray) -> tuple[np.ndarray, int]:
    """Signs with which all pairs on a longest path push the same way, and that path's length in pairs."""
    tree = component_tree(pairs, component)
    ends = max(
        ((i, j, d) for i, row in nx.all_pairs_shortest_path_length(tree) for j, d in row.items()),
        key=lambda one: one[2],
    )
    sign = np.zeros(len(pairs))
    path = nx.shortest_path(tree, ends[0], ends[1])
    for here, there in pairwise(path):
        number = next(n for n, (a, b) in enumerate(pairs) if {component[a], component[b]} == {here, there})
        sign[number] = 1.0 if component[pairs[number][0]] == here else -1.0
    return sign, ends[2]


def test_the_distortion_is_attained_and_never_exceeded() -> None:
    """500 random trees: some propensities within δ distort a ratio by δ^D, with D the longest path, none by more."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        k = int(rng.integers(2, 9))
        pairs, component, cells, n = random_world(rng, k)
        tree = span_components(pairs, component)
        longest, path = find_longest_path(tree, np.ones(len(pairs)))
        sign, expected = aligned(pairs, component)
        assert longest == expected == len(path)
        delta = float(rng.uniform(1.05, 3))
        for push in (sign, rng.uniform(-1, 1, len(pairs)), rng.choice([-1.0, 1.0], len(pairs))):
            log_o = spread_pairs(rng, pairs, component, push * np.log(delta))
            relevance = rng.uniform(0.1, 1, n)
            estimated = solve_merged(cells, pairs, relevance, np.exp(log_o))
            off = estimated / relevance
            if push is sign:
                assert off.max() / off.min() == pytest.approx(delta**longest, rel=1e-8)
            assert off.max() / off.min() <= delta**longest * (1 + 1e-8)
            origin = int(rng.integers(0, k))
            scales, ratio = find_log_scales(pairs, tree, log_o, origin)
            of_item = np.tile(np.arange(k), 2)
            np.testing.assert_allclose(np.exp(scales)[of_item], off / off[of_item == origin][0], rtol=1e-8)
            np.testing.assert_allclose(ratio, push * np.log(delta), atol=1e-12)


def chain_of_five() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two positions a component; across every pair the propensity halves."""
    return np.array([[1, 2], [3, 4], [5, 6], [7, 8]]), np.repeat(np.arange(5), 2), np.repeat(0.5 ** np.arange(5), 2)


def test_a_chain_of_five_components() -> None:
    """A mean of o(a) and o(b) as o' gives 4·(0.5/0.75) = 2.67, which is no bound: r'/r runs from 1 to 16."""
    pairs, component, propensity = chain_of_five()
    mean = (propensity[pairs[:, 0]] + propensity[pairs[:, 1]]) / 2
    assert (np.abs(np.diff(propensity[pairs])[:, 0]) / mean).sum() == pytest.approx(8 / 3)
    cells = [(c, 2 * c + side) for c in range(5) for side in (0, 1)]
    off = solve_merged(cells, pairs, np.full(5, 0.5), propensity) / 0.5
    assert off / off[-1] == pytest.approx([16, 8, 4, 2, 1])
    for origin, (low, high) in {4: (1, 16), 0: (1 / 16, 1)}.items():
        found = merge_bound(pairs, component, propensity, origin)
        assert (found.scales.min(), found.scales.max()) == pytest.approx((low, high))
        assert found.diameter == pytest.approx(high - low)  # all of one sign: attained
        assert found.log_ratios == pytest.approx(np.full(4, np.log(2)))


def test_proposition_4_bounds_and_proposition_2_is_equal() -> None:
    rng = np.random.default_rng(1)
    slack = []
    for _ in range(300):
        k = int(rng.integers(2, 9))
        pairs, component, cells, n = random_world(rng, k)
        propensity, relevance = rng.uniform(0.05, 1, len(component)), rng.uniform(0.1, 1, n)
        off = solve_merged(cells, pairs, relevance, propensity) / relevance
        origin = int(rng.integers(0, k))
        off /= off[origin]
        found = merge_bound(pairs, component, propensity, origin)
        assert np.ptp(off) <= found.diameter * (1 + 1e-9) + 1e-12
        slack.append((k, np.ptp(off) / found.diameter if found.diameter else 1.0))
        if k == 2:
            assert np.ptp(off) == pytest.approx(found.diameter, abs=1e-9)
    assert min(share for k, share in slack if k > 2) < 0.9  # signs differ, and then it is not attained


def random_members(
    rng: np.random.Generator, k: int, sparse: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Items of queries: query, component, relevance; some tied, some 0."""
    n = int(rng.integers(1, 60))
    query, component = rng.integers(0, 8, n), rng.integers(0, k, n)
    relevance = rng.choice([0.0, 0.1, 0.25, 0.5], n) if sparse else rng.uniform(0, 1, n)
    return query, component, relevance, rng.random(n) < 0.02


@given(st.integers(1, 12), st.booleans(), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_flips_against_all_pairs(k: int, sparse: bool, weighed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, of_factor, _, _ = random_world(rng, k)
    length = rng.choice([0.0, 0.5, 1.0, 2.5], len(pairs)) if weighed else np.ones(len(pairs))
    query, component, relevance, lost = random_members(rng, k, sparse)
    relevance = np.where(lost, np.nan, relevance)
    tree = span_components(pairs, of_factor)
    longest, _ = find_longest_path(tree, length)
    found = find_flips(measure_distances(tree, length), longest, query, component, relevance, int(query.max()) + 1)
    plain = component_tree(pairs, of_factor, length)
    np.testing.assert_allclose(found, flips_by_all_pairs(plain, query, component, relevance), rtol=1e-12)


def test_queries_flip_where_they_are_said_to() -> None:
    """At δ a little above, propensities along the path of the closest pair reverse it; a little below, none do that."""
    rng = np.random.default_rng(2)
    tried = 0
    for _ in range(80):
        k = int(rng.integers(2, 6))
        pairs, of_factor, _, _ = random_world(rng, k)
        component, estimated = rng.integers(0, k, 6), rng.uniform(0.1, 1, 6)
        tree = span_components(pairs, of_factor)
        longest, _ = find_longest_path(tree, np.ones(len(pairs)))
        distances = measure_distances(tree, np.ones(len(pairs)))
        at = float(find_flips(distances, longest, np.zeros(6, int), component, estimated, 1)[0])
        if len(set(component.tolist())) == 1:
            assert np.isinf(at)
            continue
        tried += 1

        def keeps_order(log_ratio: np.ndarray, world=(tree, pairs, of_factor, component, estimated)) -> bool:
            tree, pairs, of_factor, component, estimated = world
            log_o = spread_pairs(rng, pairs, of_factor, log_ratio)
            true = estimated / np.exp(find_log_scales(pairs, tree, log_o, 0)[0])[component]
            return bool((np.argsort(true) == np.argsort(estimated)).all())

        for _ in range(5):
            within = rng.uniform(-1, 1, len(pairs))
            assert keeps_order(within * np.log(at))
            assert keeps_order(np.sign(within) * np.log(at) * (1 - 1e-9))
        beyond = np.log(at) * (1 + 1e-6)
        corners = np.array(list(np.ndindex(*(2,) * len(pairs)))) * 2.0 - 1.0
        assert not all(keeps_order(corner * beyond) for corner in corners)
    assert tried > 60


@given(st.integers(2, 40), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_distances_against_paths(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, component, _, _ = random_world(rng, k)
    length = rng.integers(0, 5, len(pairs)).astype(float)
    found = measure_distances(span_components(pairs, component), length)
    for i, row in nx.all_pairs_dijkstra_path_length(component_tree(pairs, component, length)):
        for j, d in row.items():
            assert distance(found, i, j) == d


@given(st.integers(2, 6), st.integers(1, 3), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_least_diameter_against_all_spanning_trees(k: int, axes: int, whole: bool, seed: int) -> None:
    """With whole numbers for features many trees tie, and fewer pairs on the longest path decide."""
    rng = np.random.default_rng(seed)
    component = np.concatenate((np.arange(k), rng.integers(0, k, int(rng.integers(0, 6)))))
    features = (
        rng.integers(0, 6, (len(component), axes)).astype(float) if whole else rng.normal(size=(len(component), axes))
    )
    if whole and axes > 1:
        features[:, 1:] = 0
    cheapest, costs = find_minimum_merges(features, component)
    pairs, cost, exact = find_least_diameter(features, component, cheapest, costs)
    assert exact
    weight = np.full((k, k), np.inf)
    for a in range(len(component)):
        for b in range(len(component)):
            i, j = component[a], component[b]
            weight[i, j] = min(weight[i, j], float(np.linalg.norm(features[a] - features[b])))
    own = [(int(component[a]), int(component[b])) for a, b in pairs]
    assert cost == pytest.approx([weight[i, j] for i, j in own])
    best = min(measure_tree(edges, weight) for edges in spanning_trees(k))
    mine = measure_tree(own, weight)
    assert mine[0] == pytest.approx(best[0], rel=1e-6)
    if whole:
        assert mine == best


def scattered(rng: np.random.Generator, factors: int, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square, in clusters of their own."""
    component = np.concatenate((np.arange(components), rng.integers(0, components, factors - components)))
    middle = rng.uniform(0, 100, (components, 2))
    return middle[component] + rng.normal(size=(factors, 2)), component


def test_beyond_the_exact_size_a_tree_from_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It spans, is shorter than the cheapest tree, and not twice as long as the best."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        features, component = scattered(rng, 120, 60)
        cheapest, costs = find_minimum_merges(features, component)
        tree = span_components(cheapest, component)
        best, best_cost, exact = find_least_diameter(features, component, cheapest, costs)
        assert exact
        with monkeypatch.context() as patch:
            patch.setattr(centre, "MOST_EXACT", 10)
            rough, rough_cost, said = find_least_diameter(features, component, cheapest, costs)
        assert not said
        lengths = [
            find_longest_path(span_components(pairs, component), cost)[0]
            for pairs, cost in ((best, best_cost), (rough, rough_cost))
        ]
        assert lengths[0] <= lengths[1] < 2 * lengths[0]
        assert lengths[1] <= find_longest_path(tree, costs)[0]
        links = {
            tuple(pair): cost for pair, cost in zip(*map(np.ndarray.tolist, link_all(features, component)), strict=True)
        }
        assert all(links[a, b] == pytest.approx(c) for (a, b), c in zip(rough.tolist(), rough_cost, strict=True))


@given(st.integers(2, 8), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_relabelling_changes_nothing(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, component, _, _ = random_world(rng, k)
    query, of_item, relevance, _ = random_members(rng, k, sparse=False)
    features = rng.normal(size=(len(component), 2))
    names, numbers, rows = rng.permutation(len(component)), rng.permutation(k), rng.permutation(len(query))
    propensity = rng.uniform(0.1, 1, len(component))

    def measure(pairs, component, features, query, of_item, relevance, propensity, origin):
        tree = span_components(pairs, component)
        longest, _ = find_longest_path(tree, np.ones(len(pairs)))
        distances = measure_distances(tree, np.ones(len(pairs)))
        flips = find_flips(distances, longest, query, of_item, relevance, 8)
        bound = merge_bound(pairs, component, propensity, origin)
        least, cost, _ = find_least_diameter(features, component, *find_minimum_merges(features, component))
        width, _ = find_longest_path(span_components(least, component), cost)
        return longest, flips, bound.diameter, np.sort(bound.scales), width, cost

    renamed = np.empty_like(component)
    renamed[names] = numbers[component]
    moved, o = np.empty_like(features), np.empty_like(propensity)
    moved[names], o[names] = features, propensity
    before = measure(pairs, component, features, query, of_item, relevance, propensity, 0)
    after = measure(names[pairs], renamed, moved, query[rows], numbers[of_item][rows], relevance[rows], o, numbers[0])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_many_items_of_one_query_are_quick() -> None:
    """All in one query, most of them tied within one component: the worst for what looks at pairs."""
    n = 300_000
    pairs, component = np.column_stack((np.arange(499), np.arange(1, 500))), np.arange(500)
    of_item = np.zeros(n, np.int64)
    of_item[:500] = np.arange(500)
    relevance = np.full(n, 0.5)
    relevance[:500] = 0.5 * 1.001 ** np.arange(1, 501)
    tree = span_components(pairs, component)
    found = find_flips(measure_distances(tree, np.ones(499)), 499, np.zeros(n, np.int64), of_item, relevance, 1)
    assert found[0] == pytest.approx(1.001)

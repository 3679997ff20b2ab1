"""Swaps against brute force over every (item, source, target), and the impressions a link needs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.repair.allowed import Allowed, FittedCells
from elute.repair.swap import find_minimum_swaps, impressions_needed


def random_cells(rng, k, n_factors, n_items, coarse=False, holes=False):
    """Items shown under some factors of one component each."""
    component = rng.permutation(np.concatenate((np.arange(k), rng.integers(0, k, n_factors - k))))
    rows = []
    for _ in range(n_items):
        own = np.flatnonzero(component == rng.integers(0, k))
        rows.append(sorted(rng.choice(own, rng.integers(1, len(own) + 1), replace=False)))
    factor = np.array([t for row in rows for t in row], dtype=np.int32)
    relevance, propensity = rng.uniform(0.05, 1, n_items), rng.uniform(0.05, 1, n_factors)
    if coarse:
        relevance, propensity = np.ceil(relevance * 3) / 3, np.ceil(propensity * 3) / 3
    if holes:
        relevance[rng.random(n_items) < 0.2] = rng.choice([0.0, np.nan])
        propensity[rng.random(n_factors) < 0.2] = rng.choice([0.0, np.nan])
    return FittedCells(
        np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64),
        factor,
        rng.integers(1, 20, len(factor)).astype(np.uint32),
        relevance,
        propensity,
        component.astype(np.int32),
    )


def every_swap(cells, allowed):
    """All (item, source, target, cost) that the constraints and Eq. 3 permit."""
    reach, place = allowed.max_position_change, allowed.position
    for item in range(len(cells.relevance)):
        for cell in range(cells.offsets[item], cells.offsets[item + 1]):
            source = cells.factor[cell]
            for target in range(len(cells.propensity)):
                r, o_s, o_t = cells.relevance[item], cells.propensity[source], cells.propensity[target]
                if (
                    cells.component[source] == cells.component[target]
                    or not (r > 0 and o_s > 0 and o_t > 0)
                    or (allowed.only_positions is not None and not allowed.only_positions[target])
                    or (allowed.exclude_items is not None and allowed.exclude_items[item])
                    or cells.impressions[cell] < allowed.min_impressions
                    or (reach is not None and abs(place[source] - place[target]) > reach)
                ):
                    continue
                yield item, source, target, 1 / (r * o_s) + 1 / (r * o_t) - 2


def check_against_brute_force(cells, allowed):
    graph = nx.Graph()
    k = cells.component.max() + 1
    graph.add_nodes_from(range(k))
    permitted = {}
    for item, source, target, cost in every_swap(cells, allowed):
        permitted[item, source, target] = cost
        ends = cells.component[source], cells.component[target]
        if cost < graph.get_edge_data(*ends, {"weight": np.inf})["weight"]:
            graph.add_edge(*ends, weight=cost)
    forest = nx.minimum_spanning_tree(graph)

    plan = find_minimum_swaps(cells, allowed)
    item, source, target, cost = plan.swaps
    for *swap, price in zip(item, source, target, cost, strict=True):
        assert price == pytest.approx(permitted[tuple(swap)])
    assert len(item) == forest.number_of_edges()
    assert cost.sum() == pytest.approx(forest.size(weight="weight"))
    joined = nx.Graph(zip(cells.component[source], cells.component[target], strict=True))
    joined.add_nodes_from(range(k))
    parts = list(nx.connected_components(joined))
    assert {frozenset(part) for part in parts} == {frozenset(part) for part in nx.connected_components(graph)}
    left_out = set(range(k)) - set(plan.apart.tolist())
    assert left_out in parts
    assert len(left_out) == max(map(len, parts))
    assert len(plan.reasons) == len(plan.apart)
    return plan


sizes = st.integers(1, 9).flatmap(
    lambda k: st.tuples(st.just(k), st.integers(k, 20), st.integers(1, 30), st.integers(0, 2**32))
)


@given(sizes, st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_least_total_cost(size, coarse, holes):
    k, n_factors, n_items, seed = size
    rng = np.random.default_rng(seed)
    check_against_brute_force(random_cells(rng, k, n_factors, n_items, coarse, holes), Allowed())


@given(sizes, st.booleans(), st.data())
@settings(max_examples=250, deadline=None)
def test_least_total_cost_under_constraints(size, coarse, data):
    k, n_factors, n_items, seed = size
    rng = np.random.default_rng(seed)
    cells = random_cells(rng, k, n_factors, n_items, coarse, holes=data.draw(st.booleans()))
    check_against_brute_force(
        cells,
        Allowed(
            only_positions=rng.random(n_factors) < 0.7 if data.draw(st.booleans()) else None,
            exclude_items=rng.random(n_items) < 0.3 if data.draw(st.booleans()) else None,
            min_impressions=data.draw(st.sampled_from([0, 5, 15])),
            max_position_change=data.draw(st.sampled_from([None, 0, 1, 3])),
            position=rng.integers(0, 6, n_factors).astype(float),
        ),
    )


def test_many_components():
    """Far more components than bits in a byte, each with many items: still the networkx tree."""
    rng = np.random.default_rng(5)
    k, n_items = 150, 900
    component = np.concatenate((np.arange(k), rng.integers(0, k, 50)))
    source = np.concatenate((np.arange(k), rng.integers(0, 200, n_items - k)))
    cells = FittedCells(
        np.arange(n_items + 1),
        source.astype(np.int32),
        np.ones(n_items, np.uint32),
        rng.uniform(0.01, 1, n_items),
        rng.uniform(0.01, 1, 200),
        component,
    )
    plan = check_against_brute_force(cells, Allowed())
    assert len(plan.swaps.item) == k - 1


def two_components(**changes):
    """Factors 0 and 1 with item 0, factors 2 and 3 with item 1."""
    cells = FittedCells(
        np.array([0, 2, 4]),
        np.array([0, 1, 2, 3], dtype=np.int32),
        np.array([9, 9, 9, 9], dtype=np.uint32),
        np.array([0.5, 0.4]),
        np.array([0.8, 0.4, 0.2, 0.1]),
        np.array([0, 0, 1, 1]),
    )
    return cells._replace(**changes)


def test_two_components_by_hand():
    """Item 0 is the more relevant; its best source is factor 0, the best target factor 2:
    1/(0.5·0.8) + 1/(0.5·0.2) - 2 = 10.5."""
    item, source, target, cost = find_minimum_swaps(two_components()).swaps
    assert (item.tolist(), source.tolist(), target.tolist()) == ([0], [0], [2])
    assert cost == pytest.approx([10.5])


@pytest.mark.parametrize(
    ("cells", "allowed", "words"),
    [
        (
            two_components(relevance=np.array([0.5, 0.0])),
            {"only_positions": np.array([1, 1, 0, 0], bool)},
            ["none of its items has a relevance above 0", "none of its factors is an allowed target"],
        ),
        (
            two_components(propensity=np.array([0.8, 0.4, 0.0, np.nan])),
            {},
            ["none of its factors has a propensity above 0"],
        ),
        (two_components(), {"exclude_items": np.array([True, True])}, ["all its usable items are excluded"]),
        (two_components(), {"min_impressions": 10}, ["10 impressions under one factor"]),
        (
            two_components(),
            {"max_position_change": 1, "position": np.array([0.0, 1, 5, 6])},
            [
                "no other component can take one within 1 positions",
                "no other component can give one within 1 positions",
            ],
        ),
    ],
)
def test_components_that_stay_apart_are_explained(cells, allowed, words):
    plan = find_minimum_swaps(cells, Allowed(**allowed))
    assert len(plan.swaps.item) == 0
    assert len(plan.apart) == len(plan.reasons) == 1
    for part in words:
        assert part in plan.reasons[0]


def test_position_limit_needs_positions():
    with pytest.raises(ValueError, match="position"):
        Allowed(max_position_change=1)


probability = st.floats(0.01, 0.95)


@given(probability, probability, probability, st.integers(1, 10**6), st.sampled_from([0.05, 0.1, 0.5]))
@settings(max_examples=200, deadline=None)
def test_impressions_are_enough_and_no_more(r, o_s, o_t, at_source, target_se):
    def variance(n_s, n_t):
        return (1 / (r * o_s) - 1) / n_s + (1 / (r * o_t) - 1) / n_t

    needed = impressions_needed(np.array([r]), np.array([o_s]), np.array([o_t]), np.array([at_source]), target_se)
    n_t, more = int(needed.target[0]), int(needed.source[0])
    assert variance(at_source + more, n_t) <= target_se**2 * (1 + 1e-9)
    reachable = (1 / (r * o_s) - 1) / at_source < target_se**2
    assert (more == 0) == reachable or n_t == at_source
    if n_t > 1:
        fewer = (at_source, n_t - 1) if reachable else (n_t - 1, n_t - 1)
        assert variance(*fewer) > target_se**2 * (1 - 1e-9)


def test_impressions_of_proposition_1_by_hand():
    """p = 0.25 and 0.1: variance 3/n + 9/n. Target 0.1: 1,200 each; with 600 at the source, 1,800 more."""
    r, o_s, o_t = np.full(4, 0.5), np.full(4, 0.5), np.full(4, 0.2)
    needed = impressions_needed(r, o_s, o_t, np.array([0, 299, 600, 10**9]), 0.1)
    assert needed.target.tolist() == [1200, 1200, 1800, 901]
    assert needed.source.tolist() == [1200, 901, 0, 0]

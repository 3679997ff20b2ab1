"""The graph that is drawn is the log's: by brute force over all pairs, and in groups that never cross components."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import elute
from elute.cells.counts import Counts
from elute.reporting.charts import graph as module
from elute.reporting.charts.graph import (
    GraphLinks,
    build_graph,
    build_stars,
    count_shared_items,
    find_strongest,
    group_factors,
)
from elute.reporting.charts.layout import place_nodes

CELLS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=60)


def checked(cells: list[tuple[int, int, int]]) -> elute.Check:
    item, factor, shown = zip(*cells, strict=True)
    table = pa.table({"doc_id": item, "position": factor, "n": shown, "click": [0] * len(item)})
    return elute.check(elute.read_log(table, item="doc_id", impressions="n"))


def counted(cells: list[tuple[int, int, int]]) -> Counts:
    """Counts made by hand, without an engine."""
    summed: dict[tuple[int, int], int] = {}
    for item, factor, shown in cells:
        summed[item, factor] = summed.get((item, factor), 0) + shown
    items, factors = (sorted({key[side] for key in summed}) for side in (0, 1))
    order = sorted(summed)
    offsets = np.searchsorted([item for item, _ in order], [*items, items[-1] + 1])
    return Counts(
        offsets.astype(np.int64),
        np.array([factors.index(factor) for _, factor in order], np.int32),
        np.array([summed[key] for key in order], np.uint32),
        np.zeros(len(order), np.uint32),
        pa.table({"position": factors}),
        None,
        0.0,
        lambda: pa.table({"doc_id": items}),
    )


def pairs(counts: Counts, node: np.ndarray) -> dict[tuple[int, int], int]:
    """By brute force: for every two nodes the items with a cell under both."""
    out: dict[tuple[int, int], int] = {}
    for i in range(counts.n_items):
        mine = sorted({int(node[f]) for f in counts.factor[counts.offsets[i] : counts.offsets[i + 1]]})
        for pair in combinations(mine, 2):
            out[pair] = out.get(pair, 0) + 1
    return out


def as_dict(links: GraphLinks) -> dict[tuple[int, int], int]:
    return {(a, b): n for a, b, n in zip(*(part.tolist() for part in links), strict=True)}


@settings(max_examples=40, deadline=None)
@given(CELLS, st.integers(1, 4))
def test_shared_items_by_brute_force(cells: list[tuple[int, int, int]], size: int) -> None:
    counts = counted(cells)
    before = counts.offsets.copy()
    for node in (np.arange(counts.n_factors), np.arange(counts.n_factors) // size):
        assert as_dict(count_shared_items(counts, node)) == pairs(counts, node)
    assert (counts.offsets == before).all()


@settings(max_examples=40, deadline=None)
@given(CELLS)
def test_stars_and_the_spanning_forest_connect_what_the_log_connects(cells: list[tuple[int, int, int]]) -> None:
    counts = counted(cells)
    theirs = nx.Graph()
    theirs.add_nodes_from(range(counts.n_factors))
    theirs.add_edges_from(pairs(counts, np.arange(counts.n_factors)))
    for matrix in (build_stars(counts), find_strongest(build_stars(counts))):
        ours = nx.from_scipy_sparse_array(matrix)
        assert {frozenset(part) for part in nx.connected_components(ours)} == {
            frozenset(part) for part in nx.connected_components(theirs)
        }
    links = find_strongest(build_stars(counts))
    assert links.nnz == counts.n_factors - nx.number_connected_components(theirs)


def test_the_forest_keeps_the_strongest_links() -> None:
    """Against networkx's maximum spanning tree: the same total."""
    rng = np.random.default_rng(0)
    counts = counted(
        [(int(i), int(f), 1) for i, f in zip(rng.integers(60, size=300), rng.integers(9, size=300), strict=True)]
    )
    links = build_stars(counts)
    theirs = nx.maximum_spanning_tree(nx.from_scipy_sparse_array(links)).size(weight="weight")
    assert find_strongest(links).sum() == theirs


def chains(components: int, length: int) -> elute.Check:
    """Components that are chains of factors, each link made by one item."""
    cells = []
    for part in range(components):
        for k in range(length - 1):
            cells += [(part * length + k, part * length + k, 2), (part * length + k, part * length + k + 1, 1)]
    return checked(cells)


def test_many_factors_are_drawn_as_few_groups_within_components() -> None:
    for components, length in ((1, 2000), (7, 100), (900, 3)):
        check = chains(components, length)
        drawn = build_graph(check.counts, check.found)
        assert drawn.is_grouped and drawn.nodes <= 2 * module.GROUPS
        for node in range(drawn.nodes):
            parts = set(check.found.of_factor[drawn.node == node].tolist())
            if drawn.component[node] >= 0:
                assert parts == {int(drawn.component[node])}
        assert (drawn.component >= 0).all() == (components <= module._COMPONENTS)
        assert nx.number_connected_components(picture(drawn)) == min(components, module._COMPONENTS + 1)


def picture(drawn: module.Graph) -> nx.Graph:
    out = nx.Graph()
    out.add_nodes_from(range(drawn.nodes))
    out.add_edges_from(as_dict(drawn.links))
    return out


def test_groups_of_a_chain_are_stretches_of_it() -> None:
    check = chains(1, 600)
    group = group_factors(find_strongest(build_stars(check.counts)), check.found)
    runs = 1 + int((np.diff(group) != 0).sum())
    assert runs == len(set(group.tolist())) == module.GROUPS


def test_links_left_out_never_take_the_picture_apart() -> None:
    """A dense graph with one bridge of a single item."""
    rng = np.random.default_rng(1)
    cells = [(i, int(f), 1) for i in range(400) for f in rng.choice(40, 8, replace=False) + 40 * (i % 2)]
    check = checked([*cells, (1000, 0, 1), (1000, 79, 1)])
    drawn = build_graph(check.counts, check.found)
    assert len(drawn.links.a) < drawn.all_links
    assert as_dict(drawn.links)[(0, 79)] == 1
    assert nx.number_connected_components(picture(drawn)) == 1


def test_layout_sets_components_apart_and_a_chain_in_line() -> None:
    check = chains(3, 5)
    drawn = build_graph(check.counts, check.found)
    at = place_nodes(drawn.nodes, drawn.links)
    assert np.isfinite(at).all()
    boxes = [(at[drawn.component == part].min(axis=0), at[drawn.component == part].max(axis=0)) for part in range(3)]
    for (low, high), (low2, high2) in combinations(boxes, 2):
        assert (high < low2).any() or (high2 < low).any()
    first = at[drawn.component == 0]
    assert (np.diff(first[:, 0]) > 0.5).all() and np.ptp(first[:, 1]) < 0.1
    assert (place_nodes(drawn.nodes, drawn.links) == at).all()


def test_a_single_factor_and_no_links() -> None:
    check = checked([(0, 3, 1), (1, 3, 2)])
    drawn = build_graph(check.counts, check.found)
    assert drawn.nodes == 1 and len(drawn.links.a) == 0
    assert place_nodes(1, drawn.links).shape == (1, 2)

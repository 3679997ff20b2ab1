"""Applying merges: transitive, and nothing is lost from the cells."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.kernels.merge import add_cells, merge_cells, merge_factors


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=30))
    )
)
@settings(max_examples=150, deadline=None)
def test_groups_are_the_connected_sets_by_smallest_member(case):
    n, pairs = case
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(n))
    groups = sorted(map(sorted, nx.connected_components(graph)))
    expected = {member: code for code, group in enumerate(groups) for member in group}
    codes = merge_factors(n, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    assert codes.dtype == np.int32
    assert codes.tolist() == [expected[factor] for factor in range(n)]


def test_a_chain_ends_in_one_group():
    assert merge_factors(6, np.array([[4, 5], [1, 4], [2, 1]])).tolist() == [0, 1, 1, 2, 1, 1]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_cells_are_summed_within_items(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_factors, n_items = data.draw(st.integers(1, 8)), data.draw(st.integers(0, 12))
    rows = [sorted(rng.choice(n_factors, rng.integers(0, n_factors + 1), False)) for _ in range(n_items)]
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    factor = np.array([t for row in rows for t in row], dtype=np.int32)
    impressions = rng.integers(1, 100, len(factor)).astype(np.uint32)
    clicks = (impressions // 3).astype(np.uint32)
    codes = rng.integers(0, n_factors, n_factors).astype(np.int32)

    shown: Counter[tuple[int, int]] = Counter()
    clicked: Counter[tuple[int, int]] = Counter()
    for item, row in enumerate(rows):
        for cell, t in enumerate(row, start=offsets[item]):
            shown[item, int(codes[t])] += int(impressions[cell])
            clicked[item, int(codes[t])] += int(clicks[cell])

    merged = merge_cells(offsets, factor, impressions, clicks, codes)
    out_offsets, out_factor, out_impressions, out_clicks = merged
    items = np.repeat(np.arange(n_items), np.diff(out_offsets))
    cells = list(zip(items.tolist(), out_factor.tolist(), strict=True))
    assert cells == sorted(shown)
    assert out_impressions.tolist() == [shown[cell] for cell in cells]
    assert out_clicks.tolist() == [clicked[cell] for cell in cells]
    assert out_impressions.dtype == impressions.dtype


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 9)), min_size=1),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from([5, 2**33]))),
)
def test_added_cells_are_those_of_a_dictionary(
    old: list[tuple[int, int, int]], new: list[tuple[int, int, int]]
) -> None:
    def arrays(counts: dict[tuple[int, int], int]) -> tuple[list[int], list[int], list[int]]:
        cells = sorted(counts)
        offsets = [sum(item < x for item, _ in cells) for x in range(6)]
        return offsets, [factor for _, factor in cells], [counts[cell] for cell in cells]

    known: dict[tuple[int, int], int] = {}
    for x, t, n in old:
        known[x, t] = known.get((x, t), 0) + n
    offsets, factors, shown = arrays(known)
    cells = (
        np.array(offsets),
        np.array(factors, np.int32),
        np.array(shown, np.uint32),
        np.array(shown, np.uint32) // 2,
    )
    item, factor, amount = np.array(new, np.int64).reshape(-1, 3).T
    found = add_cells(cells, item, factor, amount, amount * 0)
    for x, t, n in new:
        known[x, t] = known.get((x, t), 0) + n
    expected = arrays(known)
    assert [part.tolist() for part in found[:3]] == list(expected)
    assert int(found[3].sum()) == int(cells[3].sum())

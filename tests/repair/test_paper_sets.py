"""The identifiability paper's own sets: what its section 5.1 merges and swaps."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from elute.repair.allowed import FittedCells
from elute.repair.merge import find_minimum_merges
from elute.repair.swap import find_minimum_swaps


def lists(data, name, kind):
    path = data / "identifiability" / "dataset_fully_simulation" / name / "train" / f"train.{kind}"
    return [[int(word) for word in line.split()[1:]] for line in path.read_text().splitlines()]


def cells_of(data, name):
    """Documents as items, positions as factors; relevance by Eq. C.1 with y_max = 5, noise 0.1."""
    shown, grades = lists(data, name, "init_list"), lists(data, name, "labels")
    pairs = {(doc, position) for row in shown for position, doc in enumerate(row)}
    graph = nx.Graph()
    graph.add_nodes_from(range(10))
    first: dict[int, int] = {}
    for doc, position in pairs:
        graph.add_edge(first.setdefault(doc, position), position)
    component = np.empty(10, dtype=np.int32)
    for code, members in enumerate(sorted(map(sorted, nx.connected_components(graph)))):
        component[members] = code
    grade = np.zeros(10_000)
    for row, labels in zip(shown, grades, strict=True):
        grade[row] = labels
    ordered = np.array(sorted(pairs))
    propensity = json.loads((data / "identifiability" / "click_model.json").read_text())["exam_prob"]
    return FittedCells(
        np.searchsorted(ordered[:, 0], np.arange(10_001)),
        ordered[:, 1].astype(np.int32),
        np.ones(len(ordered), np.uint32),
        0.1 + 0.9 * (2**grade - 1) / (2**5 - 1),
        np.array(propensity),
        component,
    )


@pytest.mark.parametrize(
    ("name", "merges"),
    [
        ("K=1", []),
        ("K=2", [[3, 4]]),
        ("K=3", [[3, 4], [6, 7]]),
        ("K=4", [[2, 3], [5, 6], [7, 8]]),
        ("K=2_node_intervention", []),
    ],
)
def test_positions_to_merge(data, name, merges):
    positions = np.arange(10.0).reshape(-1, 1)
    assert find_minimum_merges(positions, cells_of(data, name).component)[0].tolist() == merges


@pytest.mark.parametrize(("name", "k"), [("K=1", 1), ("K=2", 2), ("K=3", 3), ("K=4", 4)])
def test_swaps_connect(data, name, k):
    cells = cells_of(data, name)
    plan = find_minimum_swaps(cells)
    assert len(plan.swaps.item) == k - 1
    ends = (cells.component[side] for side in (plan.swaps.source, plan.swaps.target))
    joined = nx.Graph(zip(*ends, strict=True))
    joined.add_nodes_from(range(k))
    assert nx.is_connected(joined)


def test_one_swap_for_two_components_costs_what_the_authors_took(data):
    """They moved document 319 (grade 4) from position 0 to 4: nothing is cheaper, others cost the same."""
    cells = cells_of(data, "K=2")
    item, source, target, cost = find_minimum_swaps(cells).swaps
    r, o = cells.relevance[319], cells.propensity
    assert cells.factor[cells.offsets[319] : cells.offsets[320]].tolist() == [0]
    assert cost == pytest.approx([(1 / o[0] + 1 / o[4]) / r - 2])
    assert (source.tolist(), target.tolist()) == ([0], [4])
    assert cells.relevance[item[0]] == r

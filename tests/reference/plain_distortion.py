"""What merging does, the long way round: linear equations, all pairs of items, all spanning trees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import networkx as nx
import numpy as np


def solve_merged(
    cells: list[tuple[int, int]], pairs: np.ndarray, relevance: np.ndarray, propensity: np.ndarray
) -> np.ndarray:
    """Relevances r' of a fit that reproduces all click probabilities r·o of the cells (item, factor) exactly and has
    o'(a) = o'(b) for all pairs: by least squares in logs, o' of factor 0 set to that of the truth."""
    n, m = len(relevance), len(propensity)
    rows, right = [], []
    for item, factor in cells:
        row = np.zeros(n + m)
        row[[item, n + factor]] = 1
        rows.append(row)
        right.append(np.log(relevance[item] * propensity[factor]))
    for a, b in pairs:
        row = np.zeros(n + m)
        row[n + a], row[n + b] = 1, -1
        rows.append(row)
        right.append(0.0)
    row = np.zeros(n + m)
    row[n] = 1
    matrix, values = np.array([*rows, row]), np.array([*right, np.log(propensity[0])])
    found, _, rank, _ = np.linalg.lstsq(matrix, values, rcond=None)
    assert rank == n + m
    assert np.abs(matrix @ found - values).max() < 1e-8
    return np.exp(found[:n])


def component_tree(pairs: np.ndarray, component: np.ndarray, length: np.ndarray | None = None) -> nx.Graph:
    tree = nx.Graph()
    tree.add_nodes_from(range(int(component.max()) + 1))
    for number, (a, b) in enumerate(pairs):
        tree.add_edge(int(component[a]), int(component[b]), weight=1.0 if length is None else length[number])
    return tree


def flips_by_all_pairs(tree: nx.Graph, query: np.ndarray, component: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """By query."""
    away = dict(nx.all_pairs_dijkstra_path_length(tree))
    out = np.full(int(query.max()) + 1, np.inf)
    for x, y in combinations(range(len(query)), 2):
        i, j = int(component[x]), int(component[y])
        if query[x] != query[y] or i == j:
            continue
        if np.isnan(relevance[x]) or np.isnan(relevance[y]):
            at = 1.0
        elif relevance[x] == relevance[y] == 0 or away[i][j] == 0:
            at = np.inf
        else:
            with np.errstate(divide="ignore"):
                at = np.exp(abs(np.log(relevance[x]) - np.log(relevance[y])) / away[i][j])
        out[query[x]] = min(out[query[x]], at)
    return out


def spanning_trees(n: int) -> Iterator[list[tuple[int, int]]]:
    """All n^(n-2) trees over n nodes, by their Prüfer sequences."""
    if n == 2:
        yield [(0, 1)]
        return
    for code in product(range(n), repeat=n - 2):
        yield [(int(a), int(b)) for a, b in nx.from_prufer_sequence(list(code)).edges]


def measure_tree(edges: list[tuple[int, int]], weight: np.ndarray) -> tuple[float, int]:
    """The longest path by weight, and the most pairs on a path that long."""
    tree = nx.Graph()
    tree.add_weighted_edges_from((i, j, weight[i, j]) for i, j in edges)
    by_weight = dict(nx.all_pairs_dijkstra_path_length(tree))
    by_pairs = dict(nx.all_pairs_shortest_path_length(tree))
    longest = max(max(row.values()) for row in by_weight.values())
    return longest, max(by_pairs[i][j] for i in by_weight for j, d in by_weight[i].items() if d == longest)

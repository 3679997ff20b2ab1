"""A forest over the levels of one term, whose rows have +1 at one level and -1 at another, or at the reference.

Such rows are an incidence matrix: a combination of them in which the term has no part is a sum of cycles, and levels
follow from each other along the trees. The last node is the reference, whose value is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.unionfind import join_edges, singletons

Ints = NDArray[np.int64]


class Forest(NamedTuple):
    """`plus` and `minus`: the ends of every row. `order`: nodes, parents before children; `row`: the row that ties a
    node to its parent, -1 for a root. `closes`: rows that are in no tree."""

    plus: Ints
    minus: Ints
    order: Ints
    row: Ints
    closes: NDArray[np.bool_]

    @property
    def is_root(self) -> NDArray[np.bool_]:
        return np.asarray(self.row < 0)


def grow_forest(plus: Ints, minus: Ints, nodes: int) -> Forest:
    """Of these rows; the last node is the root of its tree."""
    joins = join_edges(singletons(nodes), plus, minus)
    rows = np.flatnonzero(joins)
    ends = np.concatenate((plus[rows], minus[rows]))
    by_node = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[by_node], np.arange(nodes + 1))
    order, row = _walk(plus, minus, np.concatenate((rows, rows))[by_node], starts)
    return Forest(plus, minus, order, row, ~joins)


@jit
def _walk(plus: Ints, minus: Ints, touching: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Breadth first, from the last node and then from each that was not met."""
    nodes = starts.shape[0] - 1
    order, row = np.empty(nodes, np.int64), np.full(nodes, -1)
    met = np.zeros(nodes, np.bool_)
    n = 0
    for first in range(nodes - 1, -1, -1):
        if met[first]:
            continue
        met[first] = True
        order[n] = first
        done = n
        n += 1
        while done < n:
            node = order[done]
            done += 1
            for at in range(starts[node], starts[node + 1]):
                edge = touching[at]
                other = plus[edge] + minus[edge] - node
                if not met[other]:
                    met[other] = True
                    row[other] = edge
                    order[n] = other
                    n += 1
    return order, row


@jit
def combine_cycles(
    forest: Forest, weights: Ints, indptr: Ints, indices: Ints, data: Ints, columns: int, p: int
) -> Ints:
    """Sums of rows, those outside the trees weighted by `weights` and those of the trees such that nothing is left at
    any node but the last; what they leave in the other columns, modulo `p`."""
    plus, minus, order, edge, closes = forest
    out = np.zeros((weights.shape[0], columns), np.int64)
    of_row, excess = np.empty(plus.shape[0], np.int64), np.empty(order.shape[0], np.int64)
    for k in range(weights.shape[0]):
        excess[:] = 0
        at = 0
        for row in range(plus.shape[0]):
            of_row[row] = 0
            if closes[row]:
                of_row[row] = weights[k, at]
                excess[plus[row]] += of_row[row]
                excess[minus[row]] -= of_row[row]
                at += 1
        for place in range(order.shape[0] - 1, -1, -1):
            node = order[place]
            row = edge[node]
            if row < 0:
                continue
            sign = 1 if plus[row] == node else -1
            weight = (-sign * excess[node]) % p
            of_row[row] = weight
            other = plus[row] + minus[row] - node
            excess[other] = (excess[other] - sign * weight) % p
        for row in range(plus.shape[0]):
            weight = of_row[row]
            if weight != 0:
                for entry in range(indptr[row], indptr[row + 1]):
                    out[k, indices[entry]] = (out[k, indices[entry]] + weight * data[entry]) % p
    return out


def spread_values(forest: Forest, others: Ints, rng: np.random.Generator, p: int) -> Ints:
    """Values of the nodes but the last, at random at roots, such that every row in a tree is 0; `others`: by row, what
    its other columns come to."""
    values = rng.integers(0, p, len(forest.order))
    values[-1] = 0
    return _spread(forest, others, values, p)[:-1]


@jit
def _spread(forest: Forest, others: Ints, values: Ints, p: int) -> Ints:
    plus, minus, order, edge, _ = forest
    for node in order:
        row = edge[node]
        if row >= 0:
            if plus[row] == node:
                values[node] = (values[minus[row]] - others[row]) % p
            else:
                values[node] = (values[plus[row]] + others[row]) % p
    return values

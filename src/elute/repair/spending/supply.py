"""What candidates for a budget add to the information on propensities.

Cells and candidates make one graph of items and factors. g impressions of item x under factor t, clicked with
probability p, add δ = g·p/(1-p) to the weight of the edge (x, t), which lowers a variance Σ_k a_k·Var(k) by

    δ·A/(1 + δ·R),   A = Σ_k a_k·(V_kt - Σ_s m_s·V_ks)²,   R = 1/S + Var(log o(t) - Σ_s m_s·log o(s)),

where S is the information on x so far and m its shares by factor. An item counts for each joined part on its own:
clicks under one part say nothing of another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.estimate.solve.resistance import WeightedCells
from elute.identify.information import information
from elute.kernels.jit import jit
from elute.repair.allowed import FittedCells
from elute.repair.candidates import Candidates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

_CERTAIN = 1 - 1e-6
"""The largest probability of a click that is believed."""


class Supply:
    """Cells and candidates within parts, and what the candidates were given. By candidate: `node`, its item in its
    part; `cell`; `odds`, the information an impression brings; `left`, impressions that may still be given."""

    def __init__(self, cells: FittedCells, label: NDArray[np.integer], candidates: Candidates):
        n, parts = len(cells.propensity), int(label.max(initial=-1)) + 1
        p = np.minimum(cells.relevance[cells.item] * cells.propensity[cells.factor], _CERTAIN)
        w = information(cells.impressions, p)
        known = w > 0
        of_cell = cells.item[known] * parts + label[cells.factor[known]]
        of_candidate = candidates.item * parts + label[candidates.target]
        nodes, node = np.unique(np.concatenate((of_cell, of_candidate)), return_inverse=True)
        factor = np.concatenate((cells.factor[known].astype(np.int64), candidates.target))
        keys, cell = np.unique(node * n + factor, return_inverse=True)
        self.node, self.cell = node[len(of_cell) :], cell[len(of_cell) :]
        self.offsets = np.searchsorted(keys, np.arange(len(nodes) + 1) * n)
        self.factor = (keys % n).astype(np.int32)
        self.w: Floats = np.zeros(len(keys))
        np.add.at(self.w, cell[: len(of_cell)], w[known])
        self.target = candidates.target
        self.probability = np.minimum(cells.relevance[candidates.item] * cells.propensity[candidates.target], _CERTAIN)
        usable = (label[candidates.source] == label[candidates.target]) & (self.probability > 0)
        self.odds = np.where(usable, self.probability / (1 - self.probability), 0.0)
        self.left = np.where(usable, np.maximum(candidates.most, 0), 0)
        self.given = np.zeros(len(self.left), np.int64)
        self._by_node = np.argsort(self.node, kind="stable")

    def leave_out(self, untied: NDArray[np.bool_]) -> None:
        """Close candidates that measure nothing, as their item or their target is tied to no reference."""
        cells = self.get_cells()
        known = np.diff(cells.offsets) > 0
        lost = ~known
        lost[known] = untied[cells.factor[cells.offsets[:-1][known]]]
        self.left[untied[self.target] | lost[self.node]] = 0

    def give(self, which: Ints, impressions: Ints) -> None:
        """Add impressions to some candidates; each is named once."""
        added = information(self.given[which] + impressions, self.probability[which])
        added -= information(self.given[which], self.probability[which])
        np.add.at(self.w, self.cell[which], added)
        self.given[which] += impressions
        self.left[which] -= impressions

    def get_cells(self) -> WeightedCells:
        """Those that carry information; nodes keep their numbers."""
        known = self.w > 0
        return WeightedCells(np.concatenate(([0], np.cumsum(known)))[self.offsets], self.factor[known], self.w[known])

    def imagine_all(self, most: int) -> WeightedCells:
        """The cells if each candidate were given all it can take, up to `most` impressions."""
        w = self.w.copy()
        np.add.at(w, self.cell, information(np.minimum(self.left, most), self.probability))
        return WeightedCells(self.offsets, self.factor, w)

    def list_open(self) -> tuple[Ints, Floats]:
        """Candidates that can be given more, in the order of their nodes, and S of each."""
        total = np.add.reduceat(self.w, self.offsets[:-1])
        which = self._by_node[(self.left > 0)[self._by_node]]
        which = which[total[self.node[which]] > 0]
        return which, total[self.node[which]]


@jit
def measure_contrasts(offsets: Ints, factor: Codes, w: Floats, node: Ints, target: Ints, columns: Floats) -> Floats:
    """By candidate, in the order of nodes, the sum of squares over columns of (v_t - Σ m_s·v_s)."""
    out, mean, last = np.zeros(node.shape[0]), np.zeros(columns.shape[1]), -1
    for at in range(node.shape[0]):
        begin, end = offsets[node[at]], offsets[node[at] + 1]
        if node[at] != last:
            last = node[at]
            total = w[begin:end].sum()
            mean[:] = 0.0
            for cell in range(begin, end):
                row, share = columns[factor[cell]], w[cell] / total
                for c in range(mean.shape[0]):
                    mean[c] += share * row[c]
        row = columns[target[at]]
        square = 0.0
        for c in range(mean.shape[0]):
            square += (row[c] - mean[c]) ** 2
        out[at] = square
    return out

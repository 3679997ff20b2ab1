"""Clicks of one user or one session depend on each other: nulls drawn by whole clusters.

Nothing is assumed of how clicks depend within a cluster. What clicks differ from their expectation under the fitted
null is summed over each cluster's rows, and a draw gives every cluster's differences a sign of its own (the wild
bootstrap, Wu 1986; by clusters, Cameron, Gelbach and Miller 2008; of scores, Kline and Santos 2012):

    e*(cell) = Σ_k v_k·(c_k - n_k·p)(cell),    v_k = ±1

These have mean 0 and the covariance that the clusters themselves show. A square of e* holds each cluster's own square
whatever its sign, so that what is compared is how far *different* clusters are off in the same direction.

An item's relevance was fitted to the same clicks, so the differences are too small in the direction d = ∂(n·p)/∂θ in
which it moves them. A cluster with the share h of what is known of an item, h = Σ_k d²/v over Σ d²/v with v = n·p(1-p),
gets that part divided by √(1 - h), which makes it right for independent clicks (Bell and McCaffrey 2002).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.cells.counts import Clustered, Counts
from elute.errors import EluteError
from elute.estimate.solve.problem import Floats

FEWEST = 10
"""Clusters below which their signs say too little."""

_ALL = 1 - 1e-9
"""A share h of an item that is all of it: nothing is left in that direction."""


class ClusterRows(NamedTuple):
    """Rows of clusters in some cells: equally long arrays, and how many clusters there are."""

    cluster: NDArray[np.int64]
    cell: NDArray[np.int64]
    impressions: Floats
    clicks: Floats
    number: int

    def take(self, keep: NDArray[np.bool_]) -> ClusterRows:
        """The rows of some cells, which are numbered anew."""
        inside = keep[self.cell]
        place = np.cumsum(keep) - 1
        cell = place[self.cell[inside]]
        return ClusterRows(self.cluster[inside], cell, self.impressions[inside], self.clicks[inside], self.number)

    def flip(
        self, p: Floats, slope: Floats, item: NDArray[np.integer], rng: np.random.Generator, times: int
    ) -> Iterator[Floats]:
        """Draws of clicks less expected ones by cell. By cell, `p`: P(click) under the null; `slope`: of p in the
        item's parameter; `item`: whose it is."""
        e = self.clicks - self.impressions * p[self.cell]
        d, v = self.impressions * slope[self.cell], self.impressions * (p * (1 - p))[self.cell]
        known = np.divide(d**2, v, out=np.zeros_like(d), where=v > 0)
        moved = np.divide(d * e, v, out=np.zeros_like(d), where=v > 0)
        of = item[self.cell].astype(np.int64)
        part = np.unique(of * self.number + self.cluster, return_inverse=True)[1]
        own = np.bincount(part, known)[part]
        share = own / np.maximum(np.bincount(of, known)[of], 1e-300)
        more = np.where(share < _ALL, 1 / np.sqrt(np.maximum(1 - share, 1 - _ALL)) - 1, 0.0)
        e += more * d * np.bincount(part, moved)[part] / np.maximum(own, 1e-300)
        table = csr_array((e, (self.cell, self.cluster)), shape=(len(p), self.number))
        for _ in range(times):
            yield table @ rng.choice(np.array([-1.0, 1.0]), self.number)


class Clusters(NamedTuple):
    """What depends on each other. `column`: what it is called; `rows`: cells by cluster, coded from 0."""

    column: str
    rows: Clustered

    def place(self, counts: Counts) -> ClusterRows:
        """The rows in the cells of the counts."""
        item = np.repeat(np.arange(counts.n_items, dtype=np.int64), np.diff(counts.offsets))
        cluster, of, factor, impressions, clicks = (np.asarray(column, np.int64) for column in self.rows[:5])
        cell = np.searchsorted(item * counts.n_factors + counts.factor, of * counts.n_factors + factor)
        order = np.lexsort((cluster, cell))
        shown, clicked = (column[order].astype(np.float64) for column in (impressions, clicks))
        return ClusterRows(cluster[order], cell[order], shown, clicked, int(cluster.max()) + 1)


def make_clusters(column: str, rows: Clustered) -> Clusters:
    """Clusters that can tell how clicks depend; others are refused."""
    number, shown = len(np.unique(rows.cluster)), int(rows.impressions.sum())
    if number >= shown:
        raise EluteError(
            f"column '{column}' is different in every row, so no clicks share a cluster: name what several rows share, "
            "such as a user or a session"
        )
    if number < FEWEST:
        raise EluteError(
            f"column '{column}' makes {number} {'cluster' if number == 1 else 'clusters'}; {FEWEST} or more are needed "
            "to see how clicks depend on each other: name a finer column, or none"
        )
    return Clusters(column, rows)


def read_dependent(counts: Counts, column: str) -> Clusters:
    """Clusters by the values of a column of the log, in the order of these: an engine's may change between runs."""
    rows = counts.read_clusters(column).refuse_nulls(column)
    if rows.values is not None:
        code = np.empty(len(rows.values), np.int64)
        code[pc.sort_indices(rows.values).to_numpy()] = np.arange(len(code))
        rows = rows._replace(cluster=code[rows.cluster], values=None)
    return make_clusters(column, rows)

"""Clicks that depend on each other: of one query, or of one session or user.

*Queries drawn*: if the queries themselves are a sample, and the answer is to hold for others like them, what one adds
is ξ = (its clicks expected - V·its pages) + what its clicks did to the propensities, and the variance is Σ ξ²·G/(G-1),
G the number of queries.

*Sessions, users*: click residuals are summed within each, Ψ·e; the sum of squares of these over that of single rows is
how much larger the variance of clicks is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Clustered, Counts
from elute.estimate.inference.bootstrap import queries_of_items
from elute.kernels.jit import jit
from elute.valuing.worth.find import Setting, Worth

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

_FEW = 200
"""Clusters below which Student's distribution is told from the normal one."""


@dataclass(frozen=True, eq=False)
class ClickClusters:
    """`column`: that makes them; `read`: the cells of each. `number`: of queries, where these are the clusters."""

    column: str
    read: Callable[[], Clustered] | None = None
    number: int = 0

    def list_rows(self, counts: Counts) -> Clustered:
        """Cells by cluster, those of a query too."""
        if self.read is not None:
            rows = self.read().leave_out_nulls()
            return rows._replace(cluster=_order_clusters(rows)[rows.cluster])
        item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
        query = queries_of_items(counts)[item]
        return Clustered(query, item, counts.factor, counts.impressions, counts.clicks)

    @property
    def few(self) -> int | None:
        """How many there are, where that matters."""
        return self.number if 0 < self.number < _FEW else None


def _order_clusters(rows: Clustered) -> Ints:
    """By cluster: its number in the order of names, so that draws do not hang on the order in which a log is read."""
    if rows.values is None:
        return np.arange(int(rows.cluster.max(initial=-1)) + 1)
    return np.asarray(pc.rank(rows.values, tiebreaker="first").to_numpy(), np.int64) - 1


def spread_by_query(worth: Worth, setting: Setting, queries: NDArray[np.bool_]) -> Floats:
    """The covariance of values if queries are what is drawn."""
    traffic = setting.traffic
    parts = worth.by_query - worth.value[:, None] * traffic.pages
    parts = np.where(queries, parts, 0.0)
    parts += _sum_by_query(
        *traffic.cells, traffic.query, traffic.n_queries, setting.seen.usable, worth.answer, setting.seen.binomial
    )
    used = int(queries.sum())
    n = traffic.pages[queries].sum()
    return np.asarray(parts @ parts.T * used / max(used - 1, 1) / n**2)


def widen_by_clusters(clusters: ClickClusters, worth: Worth, setting: Setting) -> float:
    """How many times larger the variance of clicks is for their dependence within clusters: of the value, or of the
    difference, for which it is most; at least 1."""
    if clusters.read is None:
        return 1.0
    rows = clusters.read().leave_out_nulls()
    traffic, seen = setting.traffic, setting.seen
    cells, factors = traffic.cells, len(seen.alpha)
    key = np.repeat(np.arange(traffic.n_items), np.diff(cells.offsets)) * factors + cells.factor
    cell = np.searchsorted(key, np.asarray(rows.item, np.int64) * factors + np.asarray(rows.factor, np.int64))
    posterior = setting.posterior
    relevance = worth.relevance[0].value if posterior is None else posterior.mean
    p = np.clip(np.nan_to_num(relevance)[rows.item] * seen.usable[rows.factor] + seen.beta[rows.factor], 0.0, 1.0)
    residual = rows.clicks - rows.impressions * p
    squares = rows.clicks * (1.0 - p) ** 2 + (rows.impressions - rows.clicks) * p**2  # of impressions one by one
    most, number = 1.0, int(rows.cluster.max(initial=-1)) + 1
    for row, base in enumerate(worth.base, 1):
        own, other = (_list_psi(worth, at, setting)[cell] for at in (row, base))
        for psi in (own, own - other):
            whole = float((np.bincount(rows.cluster, psi * residual, number) ** 2).sum())
            alone = float(psi**2 @ squares)
            most = max(most, whole / alone if alone > 0 else 1.0)
    return most


def _list_psi(worth: Worth, row: int, setting: Setting) -> Floats:
    """By cell: what a click moves one of the values by, propensities given."""
    sizes, values = np.diff(setting.traffic.cells.offsets), worth.values
    return np.asarray(
        np.repeat(values.exposure[row], sizes) * values.gains[values.which[row]] + np.repeat(values.plain[row], sizes)
    )


@jit
def _sum_by_query(
    offsets: Ints,
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    query: Codes,
    queries: int,
    alpha: Floats,
    answer: Floats,
    binomial: bool,
) -> Floats:
    """Σ e·(u_t - ū) over the cells of each query, e the clicks less those expected given the item's own."""
    rows = answer.shape[0]
    out = np.zeros((rows, queries))
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        reach = 0.0
        total = 0.0
        for cell in range(begin, end):
            if alpha[factor[cell]] > 0.0:
                reach += impressions[cell] * alpha[factor[cell]]
                total += clicks[cell]
        if reach == 0.0:
            continue
        for cell in range(begin, end):
            t = factor[cell]
            if alpha[t] > 0.0:
                p = min(total / reach * alpha[t], 0.9)
                score = (clicks[cell] - impressions[cell] * alpha[t] * total / reach) / (1.0 - p if binomial else 1.0)
                for k in range(rows):
                    out[k, query[item]] += answer[k, t] * score
    return out

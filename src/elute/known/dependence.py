"""Clicks of a page, a user or a query depend on each other: by how much errors grow for it.

If clusters are independent, the covariance of log o is V J V, with V the covariance for independent clicks and J the
sum over clusters of U·Uᵀ, where U is the cluster's part of the score. The *design effect* of a factor is its variance
by that over its variance by V. Where a cluster is a query, U is the sum of its items' clicks less those expected given
each item's number of clicks; for these, independent clicks give J = V⁻¹. Where items meet several clusters (a session
shows many), an impression's part is e·(1 at its factor - the item's weights m), e its click less the one expected; J is
compared with the sum of squares of single impressions, which the items' own estimates shrink alike.

An effect from few clusters is a poor estimate, and too small as often as not: one below the median of all is drawn
towards it, the more the fewer clusters it rests on (their effective number is (Σ z²)²/Σ z⁴). With G clusters it is
multiplied by G/(G - 1) and by the square of how much wider the 95% interval of Student's distribution with G - 1
degrees of freedom is than the normal one. It is at least 1. One cluster tells nothing: where all that ties a factor
to the others is of one (a factor that is of one query, by its name), its score is 0 whatever the clicks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import stdtrit

from elute.cells.counts import Amounts, Cells, Clustered
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.jit import jit
from elute.known.covariance import Covariance

_BORROWED = 20.0
"""Clusters' worth of the median effect in each."""

FEWEST = 2
"""Clusters below which their dependence cannot be told, and is not taken in."""

_NOTHING, _ONE = 1e-9, 1.0 + 1e-6
"""Of what independent clicks give: squares that are rounding. Effective number of clusters that is one."""


class ScoreParts(NamedTuple):
    """Parts of the score: cluster, factor and amount; `clusters` of them."""

    cluster: NDArray[np.int64]
    factor: NDArray[np.int64]
    amount: Floats
    clusters: int


class Dependence(NamedTuple):
    """`by`: the column that makes the clusters. `effect`: by factor. `tells`: whether any factor has clusters enough
    for its effect to be told."""

    by: str
    clusters: int
    effect: Floats
    tells: bool

    @property
    def typical(self) -> float:
        """The median over factors."""
        return float(np.median(self.effect)) if len(self.effect) else 1.0


def score_items(cells: Cells, o: Floats, cluster: NDArray[np.integer]) -> ScoreParts:
    """Where every item belongs to one cluster."""
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    seen = cells.impressions * o[cells.factor]
    clicks, reach = (np.bincount(item, amounts, len(cells.offsets) - 1) for amounts in (cells.clicks, seen))
    expected = np.divide(clicks, reach, out=np.zeros_like(reach), where=reach > 0)[item] * seen
    codes = np.unique(cluster, return_inverse=True)[1][item]
    return ScoreParts(codes, cells.factor.astype(np.int64), cells.clicks - expected, int(codes.max(initial=-1)) + 1)


def find_effects(by: str, scores: ScoreParts, covariance: Covariance, baseline: Floats, boost: float) -> Dependence:
    """The design effects. `covariance` of the same cells for Poisson clicks; `baseline`: by factor, what the squares
    would sum to if those were independent; `boost`: how much more information binomial ones carry."""
    n, (squares, fourths) = len(covariance.variance), sum_squares(scores, covariance)
    number = np.divide(squares**2, fourths, out=np.zeros(n), where=squares > _NOTHING * baseline)
    told = (covariance.row >= 0) & (baseline > 0) & (number > _ONE)
    tells = scores.clusters >= FEWEST and bool(told.any())
    effect = np.ones(n)
    if tells:
        effect[told] = steady_effects(boost * squares[told] / baseline[told], number[told], scores.clusters)
        effect[(covariance.row >= 0) & ~told] = np.median(effect[told])
    return Dependence(by, scores.clusters, effect, tells)


def steady_effects(own: Floats, number: Floats, clusters: int) -> Floats:
    """Effects, each as it was found from an effective `number` of clusters, of so many in all: corrected for how few
    they are, and no smaller than what they and the median say together."""
    if clusters < FEWEST or not len(own):
        return np.ones(len(own))
    own = own * (clusters / (clusters - 1) * (float(stdtrit(clusters - 1, 0.975)) / 1.96) ** 2)
    together = (number * own + _BORROWED * np.median(own)) / (number + _BORROWED)
    return np.maximum(np.maximum(own, together), 1.0)


def sum_squares(scores: ScoreParts, covariance: Covariance) -> tuple[Floats, Floats]:
    """Σ z² and Σ z⁴ over clusters by factor, z = V·U; where V is not at hand z = U, which leaves out what errors of
    one factor do to another."""
    n, inside = len(covariance.variance), covariance.row >= 0
    table = csr_array((scores.amount, (scores.cluster, scores.factor)), shape=(scores.clusters, n))
    if covariance.held:
        return covariance.sum_powers(table)
    squares, fourths = np.zeros(n), np.zeros(n)
    some = table[:, inside]
    some.sum_duplicates()
    squares[inside], fourths[inside] = some.power(2).sum(axis=0), some.power(4).sum(axis=0)
    return squares, fourths


def score_impressions(cells: Cells, o: Floats, clusters: Clustered, position: NDArray[np.int64]) -> ScoreParts:
    """Where an item meets several clusters; `position`: by item of the log, its place among the items of `cells`."""
    item = position[clusters.item]
    kept = item >= 0
    triples = _score_impressions(
        cells.offsets,
        cells.factor,
        cells.impressions,
        cells.clicks,
        o,
        clusters.cluster[kept].astype(np.int64),
        item[kept],
        clusters.factor[kept].astype(np.int64),
        clusters.impressions[kept].astype(np.float64),
        clusters.clicks[kept].astype(np.float64),
    )
    codes = np.unique(triples[0], return_inverse=True)[1]
    return ScoreParts(codes, triples[1], triples[2], int(codes.max(initial=-1)) + 1)


@jit
def _score_impressions(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    o: Floats,
    cluster: NDArray[np.int64],
    item: NDArray[np.int64],
    under: NDArray[np.int64],
    shown: Floats,
    clicked: Floats,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    size = 0
    for at in range(item.shape[0]):
        size += 1 + offsets[item[at] + 1] - offsets[item[at]]
    of, to, amount = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    n = 0
    for at in range(item.shape[0]):
        begin, end = offsets[item[at]], offsets[item[at] + 1]
        total = 0.0
        reach = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
            reach += impressions[cell] * o[factor[cell]]
        if reach == 0.0 or end - begin < 2:
            continue
        e = clicked[at] - shown[at] * o[under[at]] * total / reach
        of[n], to[n], amount[n] = cluster[at], under[at], e
        n += 1
        for cell in range(begin, end):
            of[n], to[n] = cluster[at], factor[cell]
            amount[n] = -e * impressions[cell] * o[factor[cell]] / reach
            n += 1
    return of[:n], to[:n], amount[:n]

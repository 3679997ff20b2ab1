"""How much larger the variance of a link is because clicks of a page, a user or a query depend on each other.

The error of log o(s) - log o(t) is a sum over impressions, e·a: e the click less the one expected, and a = u(t) - m(x),
with u = L⁺·(e_s - e_t) and m(x) its mean over the cells of the item, both by the information of the conditional
likelihood that is maximised (Poisson clicks). Clicks that depend on each other only within clusters give it the
variance Σ (Σ e·a)², the outer sum over clusters; independent ones Σ p·(1-p)·a². The ratio is the link's design effect,
steadied as in `elute.known.dependence`.

Where items belong to queries by their very name, a link through one item is one cluster, and tells nothing of how
queries differ. What the other items of the log say of that, by factor, is taken for every link: the mean over clicks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells, Clustered
from elute.estimate.partitioned.items import select_items
from elute.estimate.solve.problem import Codes, Floats, total_by_factor
from elute.estimate.solve.standard_errors import link_informed
from elute.identify.effects.classes import join_classes
from elute.identify.effects.design import EffectDesign
from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, singletons
from elute.known.covariance import Covariance, measure_covariance
from elute.known.dependence import steady_effects

Ints = NDArray[np.int64]

_FACTORS = 100
"""Those with most clicks, which tell how queries differ."""

Clusters = Sequence[tuple[str, Callable[[], Clustered]]]
"""Columns whose values share what makes clicks alike, and what reads the cells by each."""


class Spread(NamedTuple):
    """The variance of a link by clusters over that of independent clicks, and how many clusters that rests on."""

    ratio: float
    number: float


def measure_spread(cells: Cells, o: Floats, w: Floats, column: Floats, rows: Clustered) -> Spread:
    """Of the link whose u is `column`; `w`: the information of cells."""
    clusters = int(rows.cluster.max(initial=-1)) + 1
    totals, alone = _sum_by_cluster(
        *cells,
        o,
        w,
        column,
        rows.cluster.astype(np.int64),
        rows.item.astype(np.int64),
        rows.factor.astype(np.int64),
        rows.impressions.astype(np.float64),
        rows.clicks.astype(np.float64),
        clusters,
    )
    squares, fourths = float((totals**2).sum()), float((totals**4).sum())
    return Spread(squares / alone, squares**2 / fourths) if 0 < alone < np.inf and fourths > 0 else Spread(1.0, 0.0)


def steady(spreads: Sequence[Spread], clusters: int) -> Floats:
    """The design effects of all links, from the spread of each."""
    ratio, number = (np.array(part) for part in zip(*spreads, strict=True))
    return steady_effects(ratio, number, clusters)


def measure_queries(
    cells: Cells, o: Floats, w: Floats, query: Ints, planned: Ints, design: EffectDesign | None
) -> float:
    """The mean design effect by query over factors, weighted by their clicks, from the items that are not planned to be
    shown elsewhere: of each one's log propensity to the reference, or where they are many, of its own score."""
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    others = np.setdiff1d(item, planned)
    kept, rest = np.isin(item, others), select_items(cells, others)
    parent = singletons(len(o))
    link_informed(*rest[:2], w[kept], parent)
    component = find_roots(parent) if design is None else join_classes(find_roots(parent), design.factors)
    covariance = measure_covariance(design, rest, w[kept], o, component)
    clicks = total_by_factor(rest.factor, rest.clicks, len(o)) * (covariance.row >= 0)
    chosen = np.argsort(-clicks, kind="stable")[: min(np.count_nonzero(clicks), _FACTORS)]
    if not len(chosen):
        return 1.0
    owner = np.repeat(np.arange(len(others)), np.diff(rest.offsets))
    code = np.unique(query[others], return_inverse=True)[1]
    rows = Clustered(code[owner], owner, rest.factor, rest.impressions, rest.clicks)
    columns = [_find_column(covariance, factor) for factor in chosen.tolist()]
    effects = steady([measure_spread(rest, o, w[kept], column, rows) for column in columns], int(code.max()) + 1)
    return float(effects @ clicks[chosen] / clicks[chosen].sum())


def _find_column(covariance: Covariance, factor: int) -> Floats:
    own = np.zeros(len(covariance.row))
    own[factor] = 1.0
    return covariance.multiply(own) if covariance.held else own


@jit
def _sum_by_cluster(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    o: Floats,
    w: Floats,
    column: Floats,
    cluster: NDArray[np.int64],
    item: NDArray[np.int64],
    under: NDArray[np.int64],
    shown: Floats,
    clicked: Floats,
    clusters: int,
) -> tuple[Floats, float]:
    """By cluster Σ e·a, and over all Σ p·(1-p)·a²."""
    n = offsets.shape[0] - 1
    mean, rate = np.zeros(n), np.zeros(n)
    for x in range(n):
        weight = total = reach = 0.0
        for cell in range(offsets[x], offsets[x + 1]):
            weight += w[cell]
            mean[x] += w[cell] * column[factor[cell]]
            total += clicks[cell]
            reach += impressions[cell] * o[factor[cell]]
        if weight > 0.0:
            mean[x] /= weight
        if reach > 0.0:
            rate[x] = total / reach
    out = np.zeros(clusters)
    alone = 0.0
    for at in range(item.shape[0]):
        x, t = item[at], under[at]
        p = min(rate[x] * o[t], 1.0)
        if p <= 0.0:
            continue
        a = column[t] - mean[x]
        out[cluster[at]] += (clicked[at] - shown[at] * p) * a
        alone += shown[at] * p * (1.0 - p) * a * a
    return out, alone

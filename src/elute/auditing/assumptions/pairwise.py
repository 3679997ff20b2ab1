"""Pairwise debiasing (Definition 7.1 and Theorem 7.2 of the limits paper).

Unbiased LambdaMART assumes that at each position clicks are t⁺·R and non-clicks t⁻·(1 - R). Where two items of
different relevance are shown this forces t⁺ = t⁻ = 1: no bias at all. So it is right exactly where there is nothing
to correct, and testing it is testing that propensities are equal. Given an item's clicks, equal propensities make
every split of them over its impressions equally likely (a hypergeometric law, whatever the relevance), so that the
generalised Cochran–Mantel–Haenszel statistic, items as strata, is exact in mean and variance on any log. With clusters
the same statistic is compared with draws of theirs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import chdtrc

from elute.auditing.assumptions.draws.clusters import ClusterRows
from elute.auditing.assumptions.finding import Finding, decide, exceedance, format_p_value, report_untestable
from elute.auditing.assumptions.null import STANDARD, Drawing
from elute.cells.counts import Counts
from elute.estimate.solve.laplacian import diagonal, grounded_laplacian, solve
from elute.estimate.solve.problem import Floats
from elute.kernels.forest import connect_cells

NAME = "pairwise debiasing"

DENSE = 1_500
"""Factors up to which the covariance is formed."""

_SINGULAR = 1e-9
_MOST_RELEVANT = 0.99
"""Beyond it 1 - R is all estimation error."""


class Violation(NamedTuple):
    """At given propensities: t⁻ an item would need, least and most over items, at the factor where they differ most;
    and the smallest root mean square error of P(no click) over all factors, whatever t⁻ each may have."""

    factor: int
    least: float
    most: float
    error: float


def assess_pairwise(counts: Counts, relevance: Floats, propensity: Floats, drawing: Drawing = STANDARD) -> Finding:
    """Test for equal propensities. `effect`: the smallest root mean square error of P(no click) that any choice of
    t⁺ and t⁻ leaves."""
    equality = Equality(counts)
    statistic, freedom = equality.measure(counts.clicks), equality.freedom
    if freedom == 0:
        return report_untestable(
            NAME,
            "Pairwise debiasing cannot be tested: no item with clicks was shown under two factors.",
            "Show items under more than one factor (elute repair --method swap names them), then audit again.",
        )
    p, dispersion = float(chdtrc(freedom, statistic)), None
    if drawing.clusters is not None:
        drawn = equality.draw(drawing.clusters.place(counts), drawing)
        p, dispersion = exceedance(statistic, drawn), float(drawn.mean() / freedom)
    worst = measure_violation(counts, relevance, propensity)
    effect = worst.error if worst else None
    if decide(p) == "holds":
        return Finding(
            NAME,
            "holds",
            p,
            effect,
            f"No position bias is seen ({format_p_value(p)}), so pairwise debiasing has nothing to correct and does no "
            "harm.",
            "Ranking by click rates is as good here.",
            design_effect=dispersion,
        )
    ratios = ""
    if worst:
        ratios = f"; non-click ratios that must be one number range from {worst.least:.3g} to {worst.most:.3g}"
    return Finding(
        NAME,
        "rejected",
        p,
        effect,
        "Unbiased LambdaMART assumes that clicks and non-clicks are both proportional to relevance, which implies no "
        f"bias at all, but propensities differ here ({format_p_value(p)}){ratios}.",
        "Do not rely on XGBoost's lambdarank_unbiased (it rests on this) nor read LightGBM's position offsets as "
        "propensities; weight by the propensities of elute fit.",
        design_effect=dispersion,
    )


def measure_violation(counts: Counts, relevance: Floats, propensity: Floats) -> Violation | None:
    """With t⁺ = o, which clicks want: what is left of Eq. 37 at its best t⁻, by least squares over impressions.

    None where fewer than two items have a relevance and propensity in reach."""
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    r, o = relevance[item], propensity[counts.factor]
    known = np.isfinite(r) & np.isfinite(o) & (r <= _MOST_RELEVANT) & (counts.impressions > 0)
    if known.sum() < 2:
        return None
    r, o, factor, n = r[known], o[known], counts.factor[known], counts.impressions[known].astype(np.float64)
    size = counts.n_factors
    above = np.bincount(factor, n * (1 - o * r) * (1 - r), size)
    below = np.bincount(factor, n * (1 - r) ** 2, size)
    best = above / np.where(below > 0, below, 1.0)
    error = float(np.sqrt((n * (1 - o * r - best[factor] * (1 - r)) ** 2).sum() / n.sum()))
    ratio = (1 - o * r) / (1 - r)
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, factor, ratio)
    np.maximum.at(most, factor, ratio)
    spread = np.where(most >= least, most - least, -1.0)
    worst = int(np.argmax(spread))
    return Violation(worst, float(least[worst]), float(most[worst]), error)


class Equality:
    """The generalised Cochran–Mantel–Haenszel statistic of factor against click, items as strata, and its degrees of
    freedom. The covariance of an item's clicks, given their number C among N, is C(N - C)/(N(N - 1)) times
    diag(n) - nnᵀ/N: a Laplacian, like the information matrix."""

    def __init__(self, counts: Counts) -> None:
        size, item = counts.n_factors, np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
        n, c = (np.bincount(item, amounts, counts.n_items) for amounts in (counts.impressions, counts.clicks))
        self._counts, self._item, self._shown = counts, item, np.maximum(n, 1)
        self._rate = (c / self._shown)[item]
        self._weight = (c * (n - c) / np.maximum(n * (n - 1), 1))[item] * counts.impressions
        self._root: Floats | None = None
        if size > DENSE:
            self.freedom = _compute_rank(counts, self._weight > 0)
            return
        every = np.arange(size, dtype=np.int32)
        values, vectors = eigh(grounded_laplacian(counts.offsets, counts.factor, self._weight, every, size))
        inside = values > _SINGULAR * max(float(values.max()), 1e-300)
        self._root = vectors[:, inside] / np.sqrt(values[inside])
        self.freedom = int(inside.sum())

    def measure(self, clicks: NDArray[Any]) -> float:
        """The statistic of clicks by cell, or of what they have beyond a share of the impressions."""
        counts, size = self._counts, self._counts.n_factors
        rate = np.bincount(self._item, clicks, counts.n_items) / self._shown
        beyond = clicks - counts.impressions * rate[self._item]
        u = np.bincount(counts.factor, beyond, size).astype(np.float64)
        if self._root is not None:
            return float(((self._root.T @ u) ** 2).sum())
        scale = diagonal(counts.offsets, counts.factor, self._weight, size)
        return solve(counts.offsets, counts.factor, self._weight, None, u, scale, 1e-9, 10_000).energy

    def draw(self, rows: ClusterRows, drawing: Drawing) -> Floats:
        """The statistic of clicks drawn by clusters under equal propensities."""
        rng, same = np.random.default_rng(drawing.seed), np.ones(len(self._rate))
        flipped = rows.flip(self._rate, same, self._item, rng, drawing.replicates)
        return np.array([self.measure(e) for e in flipped])


def _compute_rank(counts: Counts, informative: NDArray[np.bool_]) -> int:
    """Factors of the cells that say something, less the parts their items join them to."""
    ends = np.concatenate(([0], np.cumsum(informative)))[counts.offsets]
    root = connect_cells(np.unique(ends), counts.factor[informative], counts.n_factors)
    used = np.unique(counts.factor[informative])
    return len(used) - len(np.unique(root[used]))

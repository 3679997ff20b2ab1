"""P(click | score, factor) = o(factor)·h(score), fitted to all queries at once.

If relevance is independent of the factor given the logging policy's score, the score is all that confounds the two (the
graph of the UPE paper, Figure 1), and h(score) is the mean relevance at that score. Clicks themselves are adjusted. o
is profiled out: given h, that of a factor is its clicks over Σ n·h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from elute.estimate.scored.conditional import ClickShares, Sharing, add_up, fit_shares, measure_shares, settle
from elute.estimate.scored.rows import ScoredRows
from elute.estimate.scored.spline import ScoreBins

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

STIFFNESS = 10.0 ** np.arange(-2, 6)
"""Of the spline, from loose to straight; one is chosen."""

FOLDS = 5


class Influence(NamedTuple):
    """How the clicks of each cluster move log o: `own` (cluster, factor) directly, and `through` (cluster, coefficient)
    by way of the spline, whose mean by factor is `means`."""

    own: sparse.csr_array
    through: Floats
    means: Floats

    def along(self, contrast: Floats) -> Floats:
        """By cluster, for one contrast of log o."""
        return np.asarray(self.own @ contrast - self.through @ (self.means.T @ contrast))

    def errors(self, reference: int) -> Floats:
        """Standard errors of log(o / o of the reference), by factor."""
        square = self.own.T @ self.own
        mixed = self.own.T @ self.through
        apart = self.means - self.means[reference]
        variance = square.diagonal() + square.diagonal()[reference] - 2 * square[:, [reference]].toarray()[:, 0]
        variance += np.einsum("km,mn,kn->k", apart, self.through.T @ self.through, apart)
        variance -= 2 * np.einsum("km,km->k", apart, mixed - mixed[reference])
        clusters = self.own.shape[0]
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) * clusters / max(clusters - 1, 1)))


class Pooled(NamedTuple):
    """`log_o`: by factor, at a scale of its own; -inf without clicks. `log_h`: by bin of scores."""

    log_o: Floats
    log_h: Floats
    stiffness: float
    freedom: float
    """Coefficients that the spline's penalty leaves."""
    log_likelihood: float
    iterations: int
    converged: bool
    influence: Influence
    information: Floats
    """Of the spline's coefficients, without the penalty."""


def fit_pooled(rows: ScoredRows, bins: ScoreBins, factors: int, seed: int) -> Pooled:
    """The fit, its stiffness chosen by clicks of queries that it has not seen."""
    return fit_stiff(rows, bins, factors, choose_stiffness(rows, bins, factors, seed))


def fit_stiff(rows: ScoredRows, bins: ScoreBins, factors: int, stiffness: float) -> Pooled:
    """The fit with a spline of this stiffness."""
    coarse = count_shares(rows, bins, factors)
    found = fit_shares(coarse, stiffness * bins.penalty)
    fine = ClickShares(rows.factor, sparse.csr_array(bins.basis)[bins.bin], rows.shown, rows.clicked)
    settled = settle(fine, found.coefficients, stiffness * bins.penalty, found.iterations, found.converged)
    log_h = bins.basis @ found.coefficients
    reached = add_up(rows.factor, rows.shown * np.exp(log_h[bins.bin]), factors)
    clicks = add_up(rows.factor, rows.clicked, factors)
    with np.errstate(divide="ignore"):
        log_o = np.log(clicks) - np.log(reached)
    level = log_o[clicks > 0].max()
    likely = rows.clicked > 0
    value = float(rows.clicked[likely] @ (log_o[rows.factor] + log_h[bins.bin])[likely] - clicks.sum())
    freedom = float(np.trace(settled.inverse @ settled.information))
    of = _find_influence(settled, rows, factors, clicks)
    return Pooled(
        log_o - level,
        log_h + level,
        stiffness,
        freedom,
        value,
        found.iterations,
        found.converged,
        of,
        settled.information,
    )


def choose_stiffness(rows: ScoredRows, bins: ScoreBins, factors: int, seed: int) -> float:
    """The loosest that is as good as any on clicks of held-out queries, within a standard error: what a stiffer spline
    gains in precision of h it pays for with a bias of o."""
    queries = int(rows.query.max()) + 1
    fold = np.random.default_rng(seed).permutation(queries) % FOLDS
    parts = [_restrict(rows, bins, factors, fold[rows.query] == one) for one in range(FOLDS)]
    whole = count_shares(rows, bins, factors)
    lost = np.zeros((len(STIFFNESS), FOLDS))
    for at, part in enumerate(parts):
        rest = ClickShares(whole.group, whole.design, whole.shown - part.shown, whole.clicked - part.clicked)
        start = None
        for place in range(len(STIFFNESS) - 1, -1, -1):
            found = fit_shares(rest, STIFFNESS[place] * bins.penalty, start)
            start = found.coefficients
            lost[place, at] = -measure_shares(part, start)
    best = int(lost.sum(axis=1).argmin())
    worse = lost - lost[best]
    allowed = worse.std(axis=1, ddof=1) * np.sqrt(FOLDS)
    return float(STIFFNESS[np.flatnonzero(worse.sum(axis=1) <= allowed)[0]])


def count_shares(rows: ScoredRows, bins: ScoreBins, factors: int) -> ClickShares:
    """Rows by bin and factor, which are as many as there are at most."""
    return _restrict(rows, bins, factors, np.ones(len(rows.factor), bool))


def _restrict(rows: ScoredRows, bins: ScoreBins, factors: int, kept: NDArray[np.bool_]) -> ClickShares:
    key = bins.bin * factors + rows.factor
    each, at = np.unique(key, return_inverse=True)
    shown, clicked = (add_up(at.reshape(-1)[kept], part[kept], len(each)) for part in (rows.shown, rows.clicked))
    return ClickShares(each % factors, bins.basis[each // factors], shown, clicked)


def _find_influence(found: Sharing, rows: ScoredRows, factors: int, clicks: Floats) -> Influence:
    rest = rows.clicked - found.expected
    queries = int(rows.query.max()) + 1
    share = np.divide(1.0, clicks, out=np.zeros_like(clicks), where=clicks > 0)
    own = sparse.csr_array((rest * share[rows.factor], (rows.query, rows.factor)), (queries, factors))
    own.sum_duplicates()
    return Influence(
        own, found.project(rows.query, np.eye(len(found.coefficients))), sparse.csr_array(found.means).toarray()
    )

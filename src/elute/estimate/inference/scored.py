"""The bootstrap of clicks adjusted for a score: whole queries are drawn, and the score's fit is repeated.

Bins, knots and stiffness of h stay those of the whole log. An item is drawn with all its clicks or not at all, so that
draws tell what propensities contribute to the error of its relevance, and what its own clicks have is added.
"""

from __future__ import annotations

import numpy as np

from elute.errors import EluteError
from elute.estimate.inference.bootstrap import FEWEST, Bootstrap, Moments, measure_spread
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.scored.conditional import ClickShares, add_up, fit_shares
from elute.progress import Progress, silent


def bootstrap_score(model: ScoreAdjusted, replicates: int, seed: int = 0, progress: Progress = silent) -> Bootstrap:
    """Of a fitted model."""
    rows, bins, factors = model.scored_rows_, model.score_bins_, len(model.propensity_)
    clusters = int(rows.query.max()) + 1
    if clusters < FEWEST:
        raise EluteError("the bootstrap draws from two queries or more; this log has one")
    each, at = np.unique(bins.bin * factors + rows.factor, return_inverse=True)
    at, factor, basis = at.reshape(-1), each % factors, bins.basis[each // factors]
    penalty, start = model.stiffness_ * bins.penalty, None
    full = model.propensity_
    reference = int(np.flatnonzero(full == 1)[0])
    rng, items = np.random.default_rng(seed), Moments(len(model.relevance_values_))
    log_o, failed = np.full((replicates, factors), np.nan), 0
    reach = np.zeros(len(model.relevance_values_))
    for replicate in range(replicates):
        progress("bootstrap", replicate + 1, replicates)
        times = np.bincount(rng.integers(clusters, size=clusters), minlength=clusters)[rows.query]
        shown, clicked = (add_up(at, times * part, len(each)) for part in (rows.shown, rows.clicked))
        there = shown > 0
        found = fit_shares(ClickShares(factor[there], basis[there], shown[there], clicked[there]), penalty, start)
        start = found.coefficients
        failed += not found.converged
        seen = add_up(factor, shown * np.exp(basis @ start), factors)
        clicks = add_up(factor, clicked, factors)
        if not clicks[reference] > 0:
            failed += found.converged
            continue
        usable = clicks > 0
        o = np.divide(clicks, seen, out=np.zeros(factors), where=usable)
        o /= o[reference]
        log_o[replicate, usable] = np.log(o[usable])
        reach = add_up(rows.whole, rows.shown * o[rows.factor], len(reach))
        known = np.flatnonzero((reach > 0) & (model.relevance_values_ > 0))
        items.add(known, -np.log(reach[known]))
    spread, low, high = measure_spread(log_o)
    own = model.find_own_errors() ** 2
    return Bootstrap(
        spread,
        low,
        high,
        np.isfinite(log_o).sum(axis=0),
        np.sqrt(items.variance() + own),
        items.count,
        replicates,
        clusters,
        disconnected=0,
        failed=failed,
    )

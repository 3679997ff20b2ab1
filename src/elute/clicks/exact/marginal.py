"""Examinations by marginal likelihood: P(click) = attraction of the document × examination of the cell, attraction
integrated out (PBM and UBM).

Maximum likelihood over examinations and the attraction of every document together breaks down where most documents
have an impression or two: a document that was clicked once has attraction 1, one that was not has 0, and examination is
then 1 everywhere. Here documents are draws from a Beta distribution (`elute.clicks.base.ranked_prior`), and what is
maximised over examinations, level, slope, strength and growth is

    Σ documents log ∫ Beta(r)·Π cells (r·o)^clicks·(1 - r·o)^skips dr  +  Σ cells log o + log(1 - o)

by L-BFGS, the integrals and their gradients by quadrature (`elute.kernels.attraction`). The last sum adds one click and
one skip to every cell, so that a cell seen a few times stays off 0 and 1. Documents with equal cells are integrated
once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.offsets import take_groups
from elute.clicks.base.ranked_prior import LOG_BOUNDS, RankedPrior
from elute.clicks.exact.tally import PairCounts
from elute.progress import Progress, silent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LOWEST, _HIGHEST = float(np.log(1e-6)), -1e-6
"""Of log examination."""

_PAIRS = 1_000_000
"""Pairs of document and cell, of different documents, that examinations are fitted to at most; evenly spaced beyond."""

_ROUNDS = 500


class MarginalFit(NamedTuple):
    """Posterior mean attraction by document (of the prior where never shown), the prior, examination by cell; rounds,
    and whether they were enough."""

    attraction: Floats
    prior: RankedPrior
    examination: Floats
    rounds: int
    converged: bool


def fit_marginally(
    cells: PairCounts,
    amount: int,
    z: Floats,
    fixed: RankedPrior | None,
    progress: Progress,
    examination: Floats | None = None,
    start: RankedPrior | None = None,
) -> MarginalFit:
    """`amount`: of cells. `z`: by document, see `RankedPrior`. `fixed`: a prior that is given, not fitted;
    `examination`: likewise, and the prior is then one of documents, without growth. `start`: a prior to search from."""
    from scipy.optimize import minimize

    seen = np.bincount(cells.cell, cells.impressions, amount).astype(np.float64)
    log_o, plain = _choose_start(cells, seen)
    if examination is not None:
        log_o = np.clip(np.log(np.maximum(examination, 1e-300)), _LOWEST, _HIGHEST)
    at = np.concatenate((log_o, (fixed or start or plain).numbers))
    held = [(value, value) for value in at[amount:]] if fixed else list(LOG_BOUNDS)
    if examination is not None:
        held[-1] = (0.0, 0.0)
    if examination is not None and fixed:
        return MarginalFit(average_documents(cells, np.exp(log_o), fixed, z), fixed, np.exp(log_o), 0, True)
    some = _group_documents(cells, z)
    rounds = 0

    def loss(x: Floats) -> tuple[float, Floats]:
        nonlocal rounds
        rounds += 1
        progress("fitting", rounds, 0)
        return _lose(x, some, amount)

    found: Any = minimize(
        loss,
        at,
        jac=True,
        method="L-BFGS-B",
        bounds=[(_LOWEST, _HIGHEST) if examination is None else (at, at) for at in log_o] + held,
        options={"maxiter": _ROUNDS, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-4},
    )
    o = np.exp(found.x[:amount])
    prior = fixed or RankedPrior.of_numbers(found.x[amount:])
    o[seen == 0] = float(seen @ o) / max(float(seen.sum()), 1.0)
    return MarginalFit(average_documents(cells, o, prior, z), prior, o, int(found.nit), bool(found.success))


class _Distinct(NamedTuple):
    """Documents that differ in their cells, how many each stands for, and their z."""

    offsets: Ints
    cell: Ints
    skips: Floats
    clicks: Floats
    times: Floats
    z: Floats


def _choose_start(cells: PairCounts, seen: Floats) -> tuple[Floats, RankedPrior]:
    """Examinations as click rates, and a prior that goes with them."""
    clicks = np.bincount(cells.cell, cells.clicks, len(seen))
    rate = (clicks + 0.5) / (seen + 1.0)
    o = np.clip(rate / rate.max(), 1e-3, 0.98)
    mean = float((cells.clicks.sum() + 0.5) / (cells.impressions @ o[cells.cell] + 1.0))
    mean = min(max(mean, 1e-3), 0.9)
    return np.log(o), RankedPrior(float(np.log(mean / (1.0 - mean))), 0.0, 3.0)


def _lose(x: Floats, some: _Distinct, amount: int) -> tuple[float, Floats]:
    """Minus the objective of this module, and its gradient."""
    from scipy.special import digamma, gammaln

    from elute.kernels.attraction import integrate_items

    log_o, (level, slope, log_s, growth) = x[:amount], x[amount:]
    s, o = np.exp(log_s + growth * some.z), np.exp(log_o)
    mean = 1.0 / (1.0 + np.exp(-(level + slope * some.z)))
    a, b = np.maximum(s * mean, 1e-12), np.maximum(s * (1.0 - mean), 1e-12)
    odds = np.empty(len(some.cell))
    evidence, _, log_r, log_not = integrate_items(*some[:4], o, a, b, odds)
    evidence += gammaln(s) - gammaln(a) - gammaln(b)
    times = np.repeat(some.times, np.diff(some.offsets))
    clicks = np.bincount(some.cell, times * some.clicks, amount)
    of_cell = clicks - np.bincount(some.cell, times * some.skips * odds, amount) + 1.0 - o / (1.0 - o)
    of_a, of_b = log_r - digamma(a) + digamma(s), log_not - digamma(b) + digamma(s)
    of_logit = some.times * (of_a - of_b) * s * mean * (1.0 - mean)
    of_log_s = some.times * (of_a * a + of_b * b)
    rest = [of_logit.sum(), float(of_logit @ some.z) - slope, of_log_s.sum(), float(of_log_s @ some.z) - growth]
    value = some.times @ evidence + clicks @ log_o + (log_o + np.log1p(-o)).sum() - 0.5 * (slope**2 + growth**2)
    return -float(value), -np.concatenate((of_cell, rest))


def fit_prior(cells: PairCounts, o: Floats, z: Floats, start: RankedPrior) -> RankedPrior:
    """The prior of documents, without growth, at these examinations. `start`: where an earlier search ended."""
    return fit_marginally(cells, len(o), z, None, silent, o, start).prior


def average_documents(cells: PairCounts, o: Floats, prior: RankedPrior, z: Floats) -> Floats:
    """Posterior mean attraction by document."""
    from elute.kernels.attraction import integrate_items

    skips, odds = cells.impressions - cells.clicks, np.empty(len(cells.cell))
    offsets, cell = cells.offsets.astype(np.int64), cells.cell.astype(np.int64)
    return integrate_items(offsets, cell, skips, cells.clicks, o, *prior.counts(z), odds)[1]


def _group_documents(cells: PairCounts, z: Floats) -> _Distinct:
    """Documents that were shown, those with equal cells once. Equal means two sums of 64 bits that are: mixed numbers
    of (cell, impressions, clicks)."""
    keys = np.stack([_mix(cells, np.uint64(seed)) for seed in (1, 2)])
    shown = np.flatnonzero(np.diff(cells.offsets))
    sums = np.add.reduceat(keys, cells.offsets[shown], axis=1) if len(shown) else keys[:, :0]
    _, first, times = np.unique(sums, axis=1, return_index=True, return_counts=True)
    documents, weights = shown[first], times.astype(np.float64)
    lengths = np.diff(cells.offsets)[documents]
    if lengths.sum() > _PAIRS:
        every = int(-(-lengths.sum() // _PAIRS))
        documents, weights, lengths = documents[::every], weights[::every] * every, lengths[::every]
    pairs, offsets = take_groups(cells.offsets, documents)
    cell, n, c = cells.cell[pairs], cells.impressions[pairs], cells.clicks[pairs]
    return _Distinct(offsets, cell.astype(np.int64), n - c, c, weights, z[documents])


def _mix(cells: PairCounts, seed: np.uint64) -> NDArray[np.uint64]:
    """SplitMix64 of every pair."""
    with np.errstate(over="ignore"):
        key = np.full(len(cells.cell), seed * np.uint64(0x9E3779B97F4A7C15), np.uint64)
        for values in (cells.cell, cells.impressions, cells.clicks):
            key = key ^ values.astype(np.uint64)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key = key ^ (key >> np.uint64(31))
    return np.asarray(key)

"""Errors of values by the delta method: how much each impression's click has moved them.

A value V is a function of clicks and of propensities, and these were fitted to the same clicks. So the residual e of a
click under factor t moves V by Ψ·e,

    Ψ = A_x·γ_t  +  (q_t - α_t·Q)/h,        q_t = α_t·r·u_t,        Q = Σ w·α·q / Σ w·α²,

where the first term is the item's own relevance (A: the exposure that the ranking gives it, γ: `estimators`), the
second the propensities: u = V_φ·D, with D = ∂V/∂ log α the total derivative and V_φ the covariance of log α, the
inverse of the profiled information (`elute.estimate.solve.standard_errors`), whose weights are w = n/h. h is p(1-p) for
a fit by the full likelihood, and p for one given each item's clicks. The variance is Σ Ψ²·n·p(1-p) over cells;
covariances of several values likewise. Trust bias adds u^β to q and β to what is fitted.

To that comes the traffic: pages are a sample of those to come, and queries differ in value. That part is
Σ_q N_q·(v_q - V)²/N², less what the noise of v_q adds to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.estimate.solve.affine_errors import affine_information
from elute.estimate.solve.laplacian import conjugate_gradients, diagonal, grounded_laplacian, multiply
from elute.estimate.solve.standard_errors import invert_scaled
from elute.kernels.blocks import map_blocks
from elute.kernels.jit import jit
from elute.valuing.inputs.examination import Examination
from elute.valuing.inputs.traffic import PageTraffic

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]

DENSE = 600
"""Propensities up to which their covariance is computed; beyond, it is applied by conjugate gradients."""

_SHARE, _STEPS = 1e-8, 5_000
_LEAST = 1e-9


class JointValues(NamedTuple):
    """Several values that are functions of the same clicks; one row each. `exposure`: by item, what its relevance
    counts for, and `gains`, by cell, how that answers to clicks; which row of these is in `which`. `plain`: by item,
    what its clicks themselves count for. `by_alpha`, `by_beta`: derivatives by factor."""

    exposure: Floats
    gains: Floats
    which: NDArray[np.int64]
    plain: Floats
    by_alpha: Floats
    by_beta: Floats


class ValueSpread(NamedTuple):
    """Covariances of values that are sums over pages, not yet divided by their number. `clicks`: by clicks, also
    through propensities. `own`: by the items' own clicks, each over the pages of its query. `psi`: of every value, by
    cell."""

    clicks: Floats
    own: Floats
    through: Floats
    """The part of propensities alone, D·V·D."""
    answer: Floats
    """u, by value and factor."""


def measure_spread(
    values: JointValues, relevance: Floats, traffic: PageTraffic, seen: Examination, dispersion: float
) -> ValueSpread:
    """`relevance`: by item, for how much clicks vary."""
    r = np.maximum(np.nan_to_num(relevance), _LEAST)
    rows = len(values.exposure)
    answer, by_beta = np.zeros((rows, len(seen.alpha))), np.zeros((rows, len(seen.alpha)))
    through = np.zeros((rows, rows))
    if seen.errors == "this log":
        answer, by_beta = (
            _solve_affine(values, r, traffic.cells, seen)
            if seen.affine
            else (
                _solve(values.by_alpha, r, traffic.cells, seen),
                by_beta,
            )
        )
        through = values.by_alpha @ answer.T + (values.by_beta @ by_beta.T if seen.affine else 0.0)
        through = _match_errors(through, values.by_alpha, r, traffic.cells, seen)
    elif seen.errors == "another log":
        through = (values.by_alpha * np.nan_to_num(seen.log_se) ** 2) @ values.by_alpha.T
    clicks, own = measure_clicks(values, r, traffic, seen, answer, by_beta)
    extra = through - (
        values.by_alpha @ answer.T + values.by_beta @ by_beta.T if seen.affine else values.by_alpha @ answer.T
    )
    return ValueSpread(clicks * dispersion + extra, own * dispersion, through, answer)


def measure_clicks(
    values: JointValues,
    r: Floats,
    traffic: PageTraffic,
    seen: Examination,
    answer: Floats,
    by_beta: Floats,
) -> tuple[Floats, Floats]:
    """Σ Ψ·Ψᵀ·n·p(1-p) over cells; and of the items' own part, divided by the pages of the query."""
    pages = traffic.pages[traffic.query]
    parts = map_blocks(
        lambda items, offsets: _sum_products(
            offsets,
            *traffic.cells[1:3],
            seen.usable,
            seen.beta,
            r[items],
            values.gains,
            values.which,
            np.ascontiguousarray(values.exposure[:, items]),
            np.ascontiguousarray(values.plain[:, items]),
            answer,
            by_beta,
            seen.binomial,
            seen.affine,
            pages[items],
        ),
        traffic.cells.offsets,
    )
    whole, own = (np.sum([part[at] for part in parts], axis=0) for at in (0, 1))
    return whole, own


def _group_information(r: Floats, cells: Cells, seen: Examination) -> Floats:
    """Of every cell about log α."""
    return _inform(*cells[:3], seen.usable, r, seen.binomial)


def find_references(seen: Examination) -> NDArray[np.int64]:
    """Groups that others are measured by, one of each component: those with the least error."""
    first = np.unique(seen.group, return_index=True)[1]
    known = np.flatnonzero(seen.component[first] >= 0)
    order = known[np.lexsort((seen.log_se[first[known]], seen.component[first[known]]))]
    return order[np.unique(seen.component[first[order]], return_index=True)[1]]


def find_covariance(r: Floats, cells: Cells, seen: Examination) -> Floats:
    """Of log α, by group: dense, with 0 for references and for what is not known."""
    groups = int(seen.group.max()) + 1
    first = np.unique(seen.group, return_index=True)[1]
    free = seen.component[first] >= 0
    free[find_references(seen)] = False
    row = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    w = _group_information(r, cells, seen)
    out = np.zeros((groups, groups))
    if free.any():
        out[np.ix_(free, free)] = invert_scaled(grounded_laplacian(*cells[:2], w, row[seen.group], int(free.sum())))
    return out


def _solve(by_alpha: Floats, r: Floats, cells: Cells, seen: Examination) -> Floats:
    """u = V·D of every value, by factor."""
    groups = int(seen.group.max()) + 1
    wanted = np.stack([np.bincount(seen.group, row, groups) for row in by_alpha])
    if groups <= DENSE:
        return np.asarray((wanted @ find_covariance(r, cells, seen))[:, seen.group])
    w, first = _group_information(r, cells, seen), np.unique(seen.group, return_index=True)[1]
    component = np.maximum(seen.component[first], 0)
    merged, known = seen.group[cells.factor], seen.component[first] >= 0
    scale = diagonal(cells.offsets, merged, w, groups)
    sizes = np.bincount(component, known)
    out = np.zeros_like(wanted)
    for at, row in enumerate(wanted):
        level = np.bincount(component, np.where(known, row, 0.0)) / np.maximum(sizes, 1.0)
        b = np.where(known, row - level[component], 0.0)
        out[at] = conjugate_gradients(lambda v: multiply(cells.offsets, merged, w, v), b, scale, _SHARE, _STEPS).x
    return np.asarray(out[:, seen.group])


def _solve_affine(values: JointValues, r: Floats, cells: Cells, seen: Examination) -> tuple[Floats, Floats]:
    """u by log α and by β, of every value and factor; scale and origin of each component count as known."""
    n, known = len(seen.alpha), np.flatnonzero(seen.known)
    alpha, fixed = np.where(seen.known, seen.alpha, 1.0), []
    for rank, shift in ((-alpha[known], 0), (seen.beta[known] / alpha[known], n)):
        order = known[np.lexsort((rank, seen.component[known]))]
        fixed.append(shift + order[np.unique(seen.component[order], return_index=True)[1]])
    free = np.concatenate((seen.known, seen.known)) & ~np.isin(np.arange(2 * n), np.concatenate(fixed))
    row = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    matrix = affine_information(*cells[:3], seen.usable, seen.beta, r, row, int(free.sum()))
    wanted = np.concatenate((values.by_alpha / alpha, values.by_beta), axis=1)
    out = np.zeros_like(wanted)
    out[:, free] = wanted[:, free] @ invert_scaled(matrix)
    return out[:, :n] / alpha, out[:, n:]


def _match_errors(through: Floats, by_alpha: Floats, r: Floats, cells: Cells, seen: Examination) -> Floats:
    """Made larger where the fit says that propensities are less sure than the information makes them: it is not the
    most efficient one, or its errors are a bootstrap's."""
    if seen.affine or int(seen.group.max()) + 1 > DENSE:
        return through
    variance = np.diagonal(find_covariance(r, cells, seen))[seen.group]
    ours, theirs = (by_alpha**2 @ np.nan_to_num(v) for v in (variance, seen.log_se**2))
    more = np.sqrt(np.maximum(np.divide(theirs, ours, out=np.ones_like(ours), where=ours > 0), 1.0))
    return np.asarray(through * np.outer(more, more))


def measure_traffic(sums: Floats, own: Floats, traffic: PageTraffic, queries: NDArray[np.bool_]) -> Floats:
    """Covariance by which pages come, of sums by value and query over `queries`; `own`: what noise adds to it."""
    pages = traffic.pages[queries]
    each = sums[:, queries] / pages
    apart = each - (sums[:, queries].sum(axis=1) / pages.sum())[:, None]
    found = (apart * pages) @ apart.T - own
    size, vectors = np.linalg.eigh((found + found.T) / 2)
    return np.asarray((vectors * np.maximum(size, 0.0)) @ vectors.T)


@jit
def _inform(
    offsets: Offsets, factor: Codes, impressions: Amounts, alpha: Floats, relevance: Floats, binomial: bool
) -> Floats:
    out = np.zeros(factor.shape[0])
    for item in range(offsets.shape[0] - 1):
        for cell in range(offsets[item], offsets[item + 1]):
            n = float(impressions[cell])
            p = min(relevance[item] * alpha[factor[cell]], n / (n + 1.0))
            out[cell] = n * p / (1.0 - p) if binomial else n * p
    return out


@jit
def _floor(n: float, affine: bool) -> float:
    """The least p that n impressions can tell from 0. Where p is r·o it does not matter: what moves is p times a
    change."""
    return 1.0 / (n + 1.0) if affine else 1e-9


@jit
def _sum_products(
    offsets: Offsets,
    factor: Codes,
    impressions: Amounts,
    alpha: Floats,
    beta: Floats,
    relevance: Floats,
    gains: Floats,
    which: NDArray[np.int64],
    exposure: Floats,
    plain: Floats,
    answer: Floats,
    by_beta: Floats,
    binomial: bool,
    affine: bool,
    pages: Floats,
) -> tuple[Floats, Floats]:
    rows = exposure.shape[0]
    whole, own = np.zeros((rows, rows)), np.zeros((rows, rows))
    q, mean, psi, mine = np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        mean[:] = 0.0
        for cell in range(begin, end):
            t, n = factor[cell], float(impressions[cell])
            if alpha[t] > 0.0:
                p = min(max(alpha[t] * relevance[item] + beta[t], _floor(n, affine)), n / (n + 1.0))
                w = n / (p * (1.0 - p)) if binomial else n / p
                total += w * alpha[t] ** 2
                for k in range(rows):
                    mean[k] += w * alpha[t] * (alpha[t] * relevance[item] * answer[k, t] + by_beta[k, t])
        for cell in range(begin, end):
            t, n = factor[cell], float(impressions[cell])
            chance = min(max(alpha[t] * relevance[item] + beta[t], 1e-9), 1.0)
            variance = n * chance * (1.0 - chance)
            p = min(max(chance, _floor(n, affine)), n / (n + 1.0))
            h = p * (1.0 - p) if binomial else p
            for k in range(rows):
                mine[k] = exposure[k, item] * gains[which[k], cell] + plain[k, item]
                q[k] = alpha[t] * relevance[item] * answer[k, t] + by_beta[k, t]
                psi[k] = mine[k]
                if alpha[t] > 0.0:
                    psi[k] += (q[k] - alpha[t] * mean[k] / total) / h
            for k in range(rows):
                for j in range(rows):
                    whole[k, j] += psi[k] * psi[j] * variance
                    own[k, j] += mine[k] * mine[j] * variance / pages[item]
    return whole, own

"""Maximum likelihood of P(click) = attraction of the document × examination of the cell, on counts: PBM and UBM.

Blocks are maximised in turn: every attraction given the examinations, then every examination given the attractions.
Each is a problem in one number whose equation, in the logarithm of that number, is increasing and convex: one step of
Newton's method lands right of the root, and the next ones come back to it. The alternation as a whole is a fixed
point in a few examinations only, which Anderson's method speeds up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.clicks.exact.tally import PairCounts, sum_by_document
from elute.progress import Progress

Floats = NDArray[np.float64]

_ALMOST = 1.0 - 1e-9
"""The largest probability while fitting."""

_TOLERANCE = 1e-6
"""On log examination."""

_ROUNDS = 500
_STEPS = 30
_EXCESS = 1e-9
_MEMORY = 6


class ProductFit(NamedTuple):
    """Attraction by document (NaN where never shown), that of a document never seen, and examination by cell; rounds
    of the alternation, and whether they were enough."""

    attraction: Floats
    typical: float
    examination: Floats
    rounds: int
    converged: bool


def fit_product(cells: PairCounts, amount: int, progress: Progress) -> ProductFit:
    """Fit `amount` examinations, the largest of them 1, and the attractions; for documents with many impressions.

    Cells never clicked get the examination 0, cells never seen the mean.
    """
    shown, clicks = sum_by_document(cells, cells.impressions), sum_by_document(cells, cells.clicks)
    skips = cells.impressions - cells.clicks
    doc = np.repeat(np.arange(len(shown)), np.diff(cells.offsets))
    of_cell = _sum_by_cell(cells, cells.clicks, amount)
    alive = of_cell > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        o = np.where(alive, of_cell / _sum_by_cell(cells, cells.impressions, amount), 0.0)
    o /= max(o.max(), 1e-300)
    attraction = np.minimum(clicks / np.maximum(sum_by_document(cells, cells.impressions * o[cells.cell]), 1.0), 0.5)

    def alternate(log_o: Floats) -> Floats:
        nonlocal attraction
        at = np.zeros(amount)
        at[alive] = np.exp(log_o)
        of_place = at[cells.cell]
        attraction = _solve(attraction, clicks, of_place, skips, doc, lambda x: sum_by_document(cells, x))
        at = _solve(at, of_cell, attraction[doc], skips, cells.cell, lambda x: _sum_by_cell(cells, x, amount))
        attraction = attraction * at.max()
        return np.asarray(np.log(at[alive] / at.max()))

    rounds, converged = 1, True
    if alive.any():
        log_o, rounds, converged = _accelerate(alternate, np.log(o[alive]), progress)
        o[alive] = np.exp(log_o)
    reach = sum_by_document(cells, cells.impressions * o[cells.cell])
    usual = min(float(clicks.sum()) / max(float(reach.sum()), 1.0), _ALMOST)
    attraction = _solve(
        np.clip(clicks / np.maximum(reach, 1e-300), 1e-12, 0.99),
        clicks,
        o[cells.cell],
        skips,
        doc,
        lambda x: sum_by_document(cells, x),
    )
    seen = _sum_by_cell(cells, cells.impressions, amount)
    unseen = seen == 0
    o[unseen] = float(seen @ o) / max(float(seen.sum()), 1.0)
    return ProductFit(np.where(shown > 0, attraction, np.nan), usual, o, rounds, converged)


def _sum_by_cell(cells: PairCounts, values: Floats, amount: int) -> Floats:
    return np.asarray(np.bincount(cells.cell, values, amount), np.float64)


def _solve(
    first: Floats,
    wanted: Floats,
    other: Floats,
    skips: Floats,
    own: NDArray[np.integer],
    sums: Callable[[Floats], Floats],
) -> Floats:
    """The x that maximise wanted·log x + Σ skips·log(1 - x·other), from those given.

    `other` and `skips` are by pair; `own` is the x a pair belongs to, and `sums` adds pairs up by it.
    """
    x = np.where(wanted > 0, np.clip(first, 1e-12, _ALMOST), 0.0)
    for _ in range(_STEPS):
        p = x[own] * other
        part = skips * p / (1.0 - p)
        skipped, slope = sums(part), sums(part / (1.0 - p))
        with np.errstate(invalid="ignore", divide="ignore"):
            excess = np.where(wanted > 0, np.log(skipped / wanted), 0.0)
            step = np.where(skipped > 0, excess * skipped / slope, -1.0)
        step = np.where(wanted > 0, step, 0.0)
        new = np.minimum(np.minimum(x * np.exp(-np.clip(step, -3.0, 3.0)), 1.0 - (1.0 - x) / 8.0), _ALMOST)
        moved = np.abs(new - x) > _EXCESS * x
        x = new
        if not moved.any() or np.abs(np.where(moved & (x < _ALMOST), step, 0.0)).max(initial=0.0) < 1e-4:
            break
    return x


def _accelerate(step: Callable[[Floats], Floats], x: Floats, progress: Progress) -> tuple[Floats, int, bool]:
    """The fixed point of `step`, extrapolated from the last few; where that makes things worse, begun anew.

    And how many steps were made, and whether the last changed nothing.
    """
    values: list[Floats] = []
    changes: list[Floats] = []
    smallest = np.inf
    for done in range(1, _ROUNDS + 1):
        new = step(x)
        change = new - x
        size = float(np.abs(change).max())
        progress("fitting", done, 0)
        if size < _TOLERANCE:
            return new, done, True
        if size > 2.0 * smallest:
            values, changes = [], []
        smallest = min(smallest, size)
        values, changes = [*values[-_MEMORY:], new], [*changes[-_MEMORY:], change]
        if len(values) > 1:
            difference = np.diff(np.stack(changes, axis=1), axis=1)
            weights = np.linalg.lstsq(difference, change, rcond=1e-10)[0]
            candidate = new - np.diff(np.stack(values, axis=1), axis=1) @ weights
            candidate -= candidate.max()
            new = candidate if np.abs(candidate - x).max() < 3.0 else new
        x = new
    return x, _ROUNDS, False

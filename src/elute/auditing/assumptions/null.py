"""The hypothesis p = r(x)·o(t), fitted, and clicks drawn under it for tests that hold on sparse logs too.

Large-sample theory fails where items have a handful of clicks each, and so does the plain parametric bootstrap: an
estimated relevance is noisier than the true one (an item without a click would never get one again), so drawn logs
are not like the log. Given its number of clicks C, however, how an item's clicks fall on its cells hardly depends on
its relevance: not at all where clicks are rare (then it is n·o/Σ n·o), and where they are many the relevance is known.
So clicks are drawn *given every item's total*: independent binomials conditioned on their sum.

What is left out are cells both frequently clicked and rarely shown, where neither is true: fewer impressions than
`FILLED` times the click rate of their factor. (That rate says next to nothing of the item's own clicks, so leaving
cells out by it does not bend the test.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.linalg import pinvh

from elute.cells.counts import Amounts, Cells, Counts
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.interior import BARRIER
from elute.estimate.solve.laplacian import diagonal, grounded_laplacian, solve
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.profile import fit_items
from elute.estimate.solve.standard_errors import information
from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, link_cells, singletons
from elute.progress import Progress, silent

REPLICATES = 199
"""Draws: with 199, a p-value of 0.05 or less has exactly probability 0.05 under the null."""

DENSE = 1_000
"""Factors up to which the information matrix is formed."""

FILLED = 40.0
"""A cell needs this many impressions times its factor's click rate. Without it, at 2 impressions a cell and
relevance up to 0.9, four logs in ten that follow r·o were rejected at level 0.05."""

_MOST_TRIES = 100_000
_FURTHEST, _HALVINGS = 60.0, 60
"""Of the logarithm of odds: how far they may have to move, and steps of bisection."""

_BELOW_ONE = 1 - 1e-9


class Drawing(NamedTuple):
    """How to draw under a null."""

    seed: int = 0
    replicates: int = REPLICATES
    progress: Progress = silent


STANDARD = Drawing()


@dataclass(frozen=True, eq=False)
class Null:
    """Cells that can contradict r·o: of items that have clicks, under two factors or more with a propensity."""

    cells: Cells
    items: NDArray[np.int64]
    """The items' codes in the counts."""
    o: Floats
    """Propensities by factor of the log; 0 where there is none."""

    @cached_property
    def r(self) -> Floats:
        """The best relevance by item at these propensities."""
        return fit_items(*self.cells, self.o, BARRIER)

    @cached_property
    def item(self) -> NDArray[np.int64]:
        """The item of every cell, as a row of `items`."""
        return np.repeat(np.arange(len(self.items)), np.diff(self.cells.offsets))

    @cached_property
    def w(self) -> Floats:
        """Information n·p/(1-p) of every cell about log r + log o."""
        return information(*self.cells[:3], self.r, self.o)

    @property
    def freedom(self) -> int:
        """Cells less free parameters: how far r·o is overidentified. 0 on a graph without cycles."""
        used = np.unique(self.cells.factor)
        return len(self.cells.factor) - len(self.items) - len(used) + len(np.unique(self.component[used]))

    @cached_property
    def component(self) -> Codes:
        """By factor: the least factor that items link it to."""
        parent = singletons(len(self.o))
        link_cells(parent, self.cells.offsets, self.cells.factor, np.arange(len(self.o), dtype=np.int32))
        return find_roots(parent)

    @cached_property
    def inverse(self) -> Floats:
        """Pseudo-inverse of the information about log o with items profiled out; up to `DENSE` factors."""
        n = len(self.o)
        return np.asarray(pinvh(grounded_laplacian(*self.cells[:2], self.w, np.arange(n, dtype=np.int32), n)))

    def energy(self, score: Floats) -> float:
        """By how much twice the log-likelihood rises if propensities move to their maximum: uᵀL⁺u."""
        if len(self.o) <= DENSE:
            return float(score @ self.inverse @ score)
        scale = diagonal(*self.cells[:2], self.w, len(self.o))
        return solve(*self.cells[:2], self.w, None, score, scale, 1e-6, 5_000).energy

    def restrict_to(self, factors: NDArray[np.integer]) -> Null:
        """The same hypothesis on the cells under some factors, which are numbered anew in the order given."""
        place = np.full(len(self.o), -1, np.int32)
        place[factors] = np.arange(len(factors), dtype=np.int32)
        keep = place[self.cells.factor] >= 0
        clicks, cells = (np.bincount(self.item[keep], w, len(self.items)) for w in (self.cells.clicks[keep], None))
        informative = (clicks > 0) & (cells > 1)
        kept = take_cells(self.cells, keep & informative[self.item])
        return Null(kept._replace(factor=place[kept.factor]), self.items[informative], self.o[factors])

    def find_most_clicked(self, most: int) -> Codes:
        """The factors in use, by code; of more than `most` those with the most clicks."""
        clicks = np.bincount(self.cells.factor, self.cells.clicks, len(self.o))
        used = np.unique(self.cells.factor)
        return np.sort(used[np.argsort(-clicks[used], kind="stable")[:most]])

    def draw(self, drawing: Drawing, stage: str) -> Iterator[Cells]:
        """Cells with clicks drawn under the null, given every item's total."""
        rng = np.random.default_rng(drawing.seed)
        p = np.clip(self.r[self.item] * self.o[self.cells.factor], 1 - _BELOW_ONE, _BELOW_ONE)
        p = tilt_odds(*self.cells, p)
        for replicate in range(drawing.replicates):
            drawing.progress(stage, replicate + 1, drawing.replicates)
            yield self.cells._replace(clicks=draw_given_totals(*self.cells, p, rng))


def fit_null(counts: Counts) -> Null:
    """Fit r·o by maximum likelihood to the cells that can contradict it."""
    n = counts.n_factors
    shown, clicked = (np.bincount(counts.factor, amounts, n) for amounts in (counts.impressions, counts.clicks))
    rate = clicked / np.maximum(shown, 1)
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    keep = (counts.impressions >= np.maximum(FILLED * rate[counts.factor], 1)) & (rate[counts.factor] > 0)
    o = np.zeros(n)
    if (keep := _find_informative(counts, item, keep)).any():
        cells = make_counts(counts.factors, take_cells(counts, keep))
        o = PBM(relevance_prior="none").fit(cells, allow_unidentified=True).propensity_
        keep = _find_informative(counts, item, keep & np.isfinite(o)[counts.factor] & (o > 0)[counts.factor])
    return Null(take_cells(counts, keep), np.unique(item[keep]), np.where(np.isfinite(o), o, 0.0))


def _find_informative(counts: Counts, item: NDArray[np.int64], keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of some cells, those of items that have clicks, under two factors or more."""
    clicks = np.bincount(item[keep], counts.clicks[keep], counts.n_items)
    cells = np.bincount(item[keep], minlength=counts.n_items)
    return np.asarray(keep & ((clicks > 0) & (cells > 1))[item])


def make_counts(factors: pa.Table, cells: Cells) -> Counts:
    """Cells under these factors as counts; their items have no names."""
    items = pa.table({"item": np.arange(len(cells.offsets) - 1)})
    return Counts(*cells, factors, None, 0.0, lambda: items)


def take_cells(cells: Cells | Counts, keep: NDArray[np.bool_]) -> Cells:
    """Some cells, and of the items those that have any."""
    ends = np.concatenate(([0], np.cumsum(keep)))[cells.offsets]
    return Cells(np.unique(ends), cells.factor[keep], cells.impressions[keep], cells.clicks[keep])


def compute_scores(cells: Cells, r: Floats, o: Floats) -> tuple[Floats, float]:
    """By cell, the slope of the log-likelihood in log p; and the deviance from the saturated model."""
    return _compute_scores(*cells, r, o)


@jit
def _compute_scores(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, r: Floats, o: Floats
) -> tuple[Floats, float]:
    out = np.empty(factor.shape[0])
    deviance = 0.0
    for item in range(offsets.shape[0] - 1):
        for cell in range(offsets[item], offsets[item + 1]):
            n = float(impressions[cell])
            c = float(clicks[cell])
            s = n - c
            p = min(r[item] * o[factor[cell]], 1.0 - 2.0**-53)
            out[cell] = c
            if c > 0.0:
                deviance += 2.0 * c * math.log(c / (n * p))
            if s > 0.0:
                out[cell] -= s * p / (1.0 - p)
                deviance += 2.0 * s * math.log(s / (n * (1.0 - p)))
    return out, deviance


@jit
def tilt_odds(offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, p: Floats) -> Floats:
    """Odds p/(1-p) times a number for each item, such that its expected clicks are its clicks.

    Given their sum, binomials do not change by that, and drawing them until they have it succeeds soonest."""
    out = p.copy()
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        shown = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
            shown += impressions[cell]
        if total == 0.0 or total == shown:
            continue
        low, high = -_FURTHEST, _FURTHEST
        for _ in range(_HALVINGS):
            middle = math.exp(0.5 * (low + high))
            expected = 0.0
            for cell in range(begin, end):
                out[cell] = middle * p[cell] / (1.0 - p[cell] + middle * p[cell])
                expected += impressions[cell] * out[cell]
            if expected < total:
                low = math.log(middle)
            else:
                high = math.log(middle)
    return out


@jit
def draw_given_totals(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    p: Floats,
    rng: np.random.Generator,
) -> Amounts:
    """Binomial(n, p) clicks of every cell given the sum over each item's cells, exactly, by rejection.

    All cells but the one of largest variance are drawn; that one must then make up the sum, and is accepted with its
    probability over its most probable value's. About one in √(cells of the item) is."""
    out = clicks.copy()
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0
        shown = 0
        last = begin
        for cell in range(begin, end):
            total += int(clicks[cell])
            shown += int(impressions[cell])
            if impressions[cell] * p[cell] * (1.0 - p[cell]) > impressions[last] * p[last] * (1.0 - p[last]):
                last = cell
        if total == 0 or total == shown or end - begin < 2:
            continue
        n = int(impressions[last])
        odds = math.log(p[last] / (1.0 - p[last]))
        mode = min(int((n + 1) * p[last]), n)
        top = mode * odds - math.lgamma(mode + 1.0) - math.lgamma(n - mode + 1.0)
        for _ in range(_MOST_TRIES):
            rest = total
            for cell in range(begin, end):
                if cell != last:
                    drawn = rng.binomial(int(impressions[cell]), p[cell])
                    out[cell] = drawn
                    rest -= drawn
            if 0 <= rest <= n:
                value = rest * odds - math.lgamma(rest + 1.0) - math.lgamma(n - rest + 1.0)
                if math.log(1.0 - rng.random()) <= value - top:
                    out[last] = rest
                    break
        else:
            out[begin:end] = clicks[begin:end]
    return out

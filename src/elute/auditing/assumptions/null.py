"""The hypothesis p = r(x)·o(t), fitted, and clicks drawn under it for tests that hold on sparse logs too.

Large-sample theory fails where items have a handful of clicks each, and so does the plain parametric bootstrap: an
estimated relevance is noisier than the true one (an item without a click would never get one again), so drawn logs
are not like the log. Given its number of clicks C, however, how an item's clicks fall on its cells hardly depends on
its relevance: not at all where clicks are rare (then it is n·o/Σ n·o), and where they are many the relevance is known.
So clicks are drawn *given every item's total*: independent binomials conditioned on their sum.

What is left out are cells both frequently clicked and rarely shown, where neither is true: fewer impressions than
`FILLED` times the click rate of their factor. (That rate says next to nothing of the item's own clicks, so leaving
cells out by it does not bend the test.) And factors with fewer than `FEWEST` clicks there: draws are compared after one
Newton step of the propensities, which goes too far where these are hardly known.

Where items have few clicks, propensities are those of the conditional likelihood, and draws are made at shrunk
relevances (`PBM` with its Beta prior): the maximum of the full likelihood is biased there, in both.

Where clicks depend on each other within clusters, neither binomials nor totals mean much. Then clusters' differences
from the null are drawn (`elute.auditing.assumptions.draws.clusters`), and statistics are their quadratic forms.
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

from elute.auditing.assumptions.draws.clusters import ClusterRows, Clusters
from elute.auditing.assumptions.draws.given_totals import draw_given_totals, tilt_odds
from elute.cells.counts import Amounts, Cells, Counts
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.interior import BARRIER
from elute.estimate.solve.laplacian import diagonal, grounded_laplacian, solve
from elute.estimate.solve.problem import Codes, Floats
from elute.estimate.solve.profile import fit_items
from elute.estimate.solve.standard_errors import information
from elute.kernels.forest import connect_cells
from elute.kernels.jit import jit
from elute.progress import Progress, silent

REPLICATES = 199
"""Draws: with 199, a p-value of 0.05 or less has exactly probability 0.05 under the null."""

DENSE = 1_000
"""Factors up to which the information matrix is formed."""

FILLED = 40.0
"""A cell needs this many impressions times its factor's click rate. Without it, at 2 impressions a cell and
relevance up to 0.9, four logs in ten that follow r·o were rejected at level 0.05."""

FEWEST = 20
"""Clicks that a factor must have in such cells."""

_BELOW_ONE = 1 - 1e-9


class Drawing(NamedTuple):
    """How to draw under a null."""

    seed: int = 0
    replicates: int = REPLICATES
    progress: Progress = silent
    clusters: Clusters | None = None
    """Within which clicks depend on each other; None: clicks are independent."""


class CellScores(NamedTuple):
    """Of some clicks: by cell the slope of the log-likelihood in log p, and the deviance from the saturated model, at
    given propensities and every item's best relevance."""

    slope: Floats
    deviance: float


STANDARD = Drawing()


@dataclass(frozen=True, eq=False)
class Null:
    """Cells that can contradict r·o: of items that have clicks, under two factors or more with a propensity."""

    cells: Cells
    items: NDArray[np.int64]
    """The items' codes in the counts."""
    o: Floats
    """Propensities by factor of the log; 0 where there is none."""
    shrunk: Floats
    """By item: the relevance at which draws are made."""
    rows: ClusterRows | None = None
    """The clicks by cluster, where they depend on each other."""

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
        if self.rows is None:
            return information(*self.cells[:3], self.r, self.o)
        return np.asarray(self.cells.impressions * self.p / (1 - self.p))

    @cached_property
    def p(self) -> Floats:
        """P(click) of every cell, for draws by clusters: no nearer to 1 than n impressions can tell, n/(n + 1)."""
        n = self.cells.impressions.astype(np.float64)
        return np.clip(self.r[self.item] * self.o[self.cells.factor], 1 - _BELOW_ONE, n / (n + 1))

    @property
    def freedom(self) -> int:
        """Cells less free parameters: how far r·o is overidentified. 0 on a graph without cycles."""
        used = np.unique(self.cells.factor)
        return len(self.cells.factor) - len(self.items) - len(used) + len(np.unique(self.component[used]))

    @cached_property
    def component(self) -> Codes:
        """By factor: the least factor that items link it to."""
        return connect_cells(self.cells.offsets, self.cells.factor, len(self.o))

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
        keep &= informative[self.item]
        kept = take_cells(self.cells, keep)
        kept = kept._replace(factor=place[kept.factor])
        rows = None if self.rows is None else self.rows.take(keep)
        return Null(kept, self.items[informative], self.o[factors], self.shrunk[informative], rows)

    def find_most_clicked(self, most: int) -> Codes:
        """The factors in use, by code; of more than `most` those with the most clicks."""
        clicks = np.bincount(self.cells.factor, self.cells.clicks, len(self.o))
        used = np.unique(self.cells.factor)
        return np.sort(used[np.argsort(-clicks[used], kind="stable")[:most]])

    def draw(self, drawing: Drawing, stage: str) -> Iterator[Cells]:
        """Cells with clicks drawn under the null, given every item's total."""
        rng = np.random.default_rng(drawing.seed)
        p = np.clip(self.shrunk[self.item] * self.o[self.cells.factor], 1 - _BELOW_ONE, _BELOW_ONE)
        p = tilt_odds(*self.cells, p)
        for replicate in range(drawing.replicates):
            drawing.progress(stage, replicate + 1, drawing.replicates)
            yield self.cells._replace(clicks=draw_given_totals(*self.cells, p, rng))

    def score(self, cells: Cells) -> CellScores:
        """Of clicks in these cells, every item's relevance fitted anew."""
        return compute_scores(cells, fit_items(*cells, self.o, BARRIER), self.o)

    def score_draws(self, drawing: Drawing, stage: str) -> Iterator[CellScores]:
        """First of the clicks themselves, then of each draw: given items' totals, or by clusters."""
        if self.rows is None:
            yield self.score(self.cells)
            yield from map(self.score, self.draw(drawing, stage))
            return
        yield self._project(self.cells.clicks - self.cells.impressions * self.p)
        rng = np.random.default_rng(drawing.seed)
        for replicate, e in enumerate(self.rows.flip(self.p, self.p, self.item, rng, drawing.replicates)):
            drawing.progress(stage, replicate + 1, drawing.replicates)
            yield self._project(e)

    def _project(self, e: Floats) -> CellScores:
        """Of clicks less expected ones: relevance moves by a step, and the deviance is Pearson's."""
        slope = e / (1 - self.p)
        slope -= self.w * (np.bincount(self.item, slope) / np.bincount(self.item, self.w))[self.item]
        return CellScores(slope, float((slope**2 / self.w).sum()))


def fit_null(counts: Counts, clusters: Clusters | None = None) -> Null:
    """Fit r·o to the cells that can contradict it."""
    n = counts.n_factors
    shown, clicked = (np.bincount(counts.factor, amounts, n) for amounts in (counts.impressions, counts.clicks))
    rate = clicked / np.maximum(shown, 1)
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    filled = (counts.impressions >= np.maximum(FILLED * rate[counts.factor], 1)) & (rate[counts.factor] > 0)
    keep = filled
    while True:
        keep = _find_informative(counts, item, filled)
        enough = filled & (np.bincount(counts.factor[keep], counts.clicks[keep], n) >= FEWEST)[counts.factor]
        if (enough == filled).all():
            break
        filled = enough
    o, r = np.zeros(n), np.zeros(counts.n_items)
    if keep.any():
        several = filled & (np.bincount(item[filled], minlength=counts.n_items) > 1)[item]
        fit = PBM().fit(make_counts(counts.factors, take_cells(counts, several)), allow_unidentified=True)
        o, r[np.unique(item[several])] = fit.propensity_, np.nan_to_num(fit.relevance_values_)
        keep = _find_informative(counts, item, keep & np.isfinite(o)[counts.factor] & (o > 0)[counts.factor])
    items = np.unique(item[keep])
    rows = None if clusters is None else clusters.place(counts).take(keep)
    return Null(take_cells(counts, keep), items, np.where(np.isfinite(o), o, 0.0), r[items], rows)


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


def compute_scores(cells: Cells, r: Floats, o: Floats) -> CellScores:
    """At these relevances and propensities."""
    return CellScores(*_compute_scores(*cells, r, o))


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

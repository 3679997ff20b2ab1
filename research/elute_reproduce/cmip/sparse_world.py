"""Logs from dense to sparse in which a position-based user clicked, and scores that share query effects."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.cmip.calibrated import JudgedCells
from elute.auditing.cmip.population import ClickLaw
from elute.cells.counts import Cells, Counts, Membership
from elute.estimate.models.base import Estimator
from elute.estimate.models.pbm import PBM
from elute.estimate.models.registry import build
from elute.simulation.grades import reciprocal_propensities, relevance_of_grades

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTH = 10
GRADES = (0.5, 0.3, 0.15, 0.03, 0.02)
NOISE = 0.5**0.5
"""Of the policy's score, a grade with noise of variance 0.5 (the paper's NoisyOracle)."""
TEMPERATURE = 0.1
SPREAD = 0.5
"""Of log relevance within a grade, where queries differ."""
MODELS = ("true IPW", "PBM", "naive", "DCTR")


class ClickedLog(NamedTuple):
    """Impressions and clicks by item and position, ten items a query, and their grades."""

    shown: Ints
    clicked: Ints
    grade: Floats

    @property
    def query(self) -> Ints:
        return np.arange(len(self.grade)) // WIDTH

    @property
    def expected_rank(self) -> Floats:
        return np.asarray(self.shown @ np.arange(1.0, WIDTH + 1) / self.shown.sum(axis=1), np.float64)


def draw_log(queries: int, pages: int, rng: np.random.Generator, correlation: float | None = None) -> ClickedLog:
    """`pages` of each query, ranked by Plackett–Luce, clicked with 1/rank times relevance. Relevance is the grade's,
    or, with `correlation`, spread within grades so that this share of the variance of its logarithm is the query's."""
    grade = rng.choice(len(GRADES), (queries, WIDTH), p=GRADES)
    relevance = relevance_of_grades(grade, len(GRADES) - 1)
    if correlation is not None:
        effect = draw_correlated((queries, WIDTH), correlation, rng)
        relevance = np.clip(relevance * np.exp(SPREAD * effect), 0.01, 1.0)
    score = grade + NOISE * rng.standard_normal((queries, WIDTH))
    order = np.argsort(-(score[:, None] / TEMPERATURE + rng.gumbel(size=(queries, pages, WIDTH))), axis=2)
    item = np.arange(queries)[:, None, None] * WIDTH + order
    place = np.broadcast_to(np.arange(WIDTH), item.shape)
    shown = np.bincount((item * WIDTH + place).ravel(), minlength=queries * WIDTH**2).reshape(-1, WIDTH)
    clicked = rng.binomial(shown, relevance.reshape(-1, 1) * reciprocal_propensities(WIDTH))
    return ClickedLog(shown, clicked, grade.ravel().astype(np.float64))


def draw_correlated(shape: tuple[int, int], correlation: float, rng: np.random.Generator) -> Floats:
    """Standard normal by query and item, two items of a query correlated so."""
    shared, own = rng.standard_normal((shape[0], 1)), rng.standard_normal(shape)
    return np.asarray(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own, np.float64)


def fit_model(name: str, log: ClickedLog, judged: int) -> tuple[JudgedCells, Floats]:
    """A model of `MODELS` fitted to a log, ready for redrawn clicks, and its relevance of the judged items: those of
    the first `judged` queries."""
    counts = _count(log)
    model = _build(name).fit(counts, allow_unidentified=True)
    relevance = np.asarray(model.relevance_values_, np.float64)
    refit = model.copy_for_refit() if isinstance(model, PBM) else _build(name)

    def again(clicks: NDArray[np.uint64]) -> Floats:
        drawn = replace(counts, clicks=clicks.astype(np.uint32))
        return np.asarray(refit.fit(drawn, allow_unidentified=True).relevance_values_, np.float64)

    law = ClickLaw(np.nan_to_num(model.propensity_), np.zeros(WIDTH))
    item = np.flatnonzero(np.isfinite(relevance) & (log.query < judged))
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    known = JudgedCells(cells, law, again, item, log.grade[item], log.query[item], -log.expected_rank[item])
    return known, relevance[item]


def _build(name: str) -> Estimator:
    if name == "true IPW":
        return build("ipw", propensities=reciprocal_propensities(WIDTH))
    return build({"PBM": "pbm", "naive": "naive", "DCTR": "ctr"}[name])


def _count(log: ClickedLog) -> Counts:
    item, factor = np.nonzero(log.shown)
    offsets = np.concatenate(([0], np.cumsum((log.shown > 0).sum(axis=1))))
    n = len(log.grade)
    names = pa.table({"query_id": log.query, "doc_id": np.arange(n)})
    of_query = Membership(
        n // WIDTH, log.query.astype(np.int32), np.arange(n, dtype=np.int32), log.shown.sum(axis=1).astype(np.int64)
    )
    return Counts(
        offsets.astype(np.int64),
        factor.astype(np.int32),
        log.shown[item, factor].astype(np.uint32),
        log.clicked[item, factor].astype(np.uint32),
        pa.table({"position": np.arange(1, WIDTH + 1)}),
        of_query,
        0.0,
        lambda: names,
    )

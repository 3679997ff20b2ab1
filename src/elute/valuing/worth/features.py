"""`dm-features`: relevance of documents never shown, from a trained ranker's scores.

Scores have no scale. They are given one by the documents that were shown: clicks are Poisson with mean E·exp(b·x), E
the exposure, x a constant, the score's normal quantile z among all documents, and z². b maximises the likelihood; its
covariance is the sandwich, with clusters by query. A value is then Σ A·exp(b·x), and moves with b by Σ A·x·exp(b·x).
What the scores leave open of a single document is a Gamma of mean 1, whose spread shows in how clicks vary around what
is expected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from elute._util.matching import match
from elute.cells.counts import sum_by_item
from elute.cells.roles import Roles
from elute.errors import EluteError
from elute.valuing.inputs.exposure import EMPTY, KEPT, NO_PROPENSITY, Exposure
from elute.valuing.inputs.rankings import Names, RankingSource, read_scored
from elute.valuing.worth.find import Setting, Worth
from elute.valuing.worth.influence import JointValues, measure_traffic

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

_STEPS = 50
_FEWEST = 30
"""Documents with a score and clicks, to make a scale of."""


class Calibration(NamedTuple):
    """`beta` and its `covariance`; `spread`: the variance of a document's relevance over the square of its mean."""

    beta: Floats
    covariance: Floats
    spread: float


class FeatureWorth(NamedTuple):
    """Clicks a page, of what was shown and of each ranking, and their covariance, over the queries it could value."""

    value: Floats
    covariance: Floats
    queries: Flags

    def to_worth(self) -> Worth:
        """As other estimators leave it, without what it rests on."""
        nothing = np.empty((0, 0))
        values = JointValues(nothing, nothing, np.empty(0, np.int64), nothing, nothing, nothing)
        return Worth(self.value, self.covariance, [0] * (len(self.value) - 1), nothing, [], values, nothing)


def value_by_features(source: RankingSource, setting: Setting, names: Names, roles: Roles, label: str) -> FeatureWorth:
    """`source`: a table of the query, the document and `score`, which must have all documents that rankings show."""
    from scipy.stats import rankdata  # slow to import

    traffic, seen = setting.traffic, setting.seen
    ids, score, place = read_scored(source, "the ranker's scores", roles)
    z = ndtri((rankdata(score) - 0.5) / len(score))
    of_item = match([names.query, names.doc], ids)
    scored = int((of_item >= 0).sum())
    if scored < _FEWEST:
        raise EluteError(f"{place} scores {scored:,} of the documents that {label} shows, and {_FEWEST} make a scale")
    calibration = _calibrate(setting, z, of_item)
    shown = _expect_shown(setting, z, of_item)
    rows = [shown, *(_expect_ranking(one, z, ids, shown) for one in setting.exposures)]
    queries = np.logical_and.reduce([row.known for row in rows])
    n = traffic.pages[queries].sum()
    sums = np.zeros((len(rows), traffic.n_queries))
    moves = np.zeros((len(rows), 3))
    by_document = []
    for at, row in enumerate(rows):
        used = queries[row.query]
        r = np.exp(row.x[used] @ calibration.beta)
        clicks = row.weight[used] * seen.usable[row.factor[used]] * r
        sums[at] = np.bincount(row.query[used], clicks, traffic.n_queries)
        moves[at] = clicks @ row.x[used]
        by_document.append(clicks)
    spread = _spread_documents(rows, by_document, queries, calibration.spread)
    whole = (
        moves @ calibration.covariance @ moves.T
        + spread
        + measure_traffic(sums, np.zeros_like(spread), traffic, queries)
    )
    return FeatureWorth(sums[:, queries].sum(axis=1) / n, whole / n**2, queries)


class _Expected(NamedTuple):
    """Impressions of documents, by row: the query, the factor, how many, the score's `x`, and the document's row among
    the scores; `known`: by query, whether all its documents have one and all its factors a propensity."""

    query: Ints
    factor: Ints
    weight: Floats
    x: Floats
    document: Ints
    known: Flags


def _basis(z: Floats) -> Floats:
    return np.stack((np.ones(len(z)), z, z**2), axis=1)


def _calibrate(setting: Setting, z: Floats, of_item: Ints) -> Calibration:
    """Poisson regression of the items' clicks on their scores, by Newton's method."""
    traffic, alpha = setting.traffic, setting.seen.usable
    cells = traffic.cells
    item = np.repeat(np.arange(traffic.n_items), np.diff(cells.offsets))
    reach = np.bincount(item, cells.impressions * alpha[cells.factor], traffic.n_items)
    used = np.flatnonzero((of_item >= 0) & (reach > 0))
    clicks, x = sum_by_item(cells.offsets, cells.clicks)[used].astype(np.float64), _basis(z[of_item[used]])
    exposure = reach[used]
    beta = np.array([np.log(max(clicks.sum(), 0.5) / exposure.sum()), 0.0, 0.0])
    ridge = 1e-6 * np.eye(3)
    for _ in range(_STEPS):
        mean = exposure * np.exp(np.clip(x @ beta, -30, 30))
        step = np.linalg.solve((x * mean[:, None]).T @ x + ridge, x.T @ (clicks - mean))
        beta = beta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-9:
            break
    mean = exposure * np.exp(x @ beta)
    inverse = np.linalg.inv((x * mean[:, None]).T @ x + ridge)
    score = np.zeros((traffic.n_queries, 3))
    np.add.at(score, traffic.query[used], x * (clicks - mean)[:, None])
    spread = max(float((((clicks - mean) ** 2 - clicks).sum()) / (mean**2).sum()), 0.0)
    return Calibration(beta, inverse @ (score.T @ score) @ inverse, spread)


def _expect_shown(setting: Setting, z: Floats, of_item: Ints) -> _Expected:
    traffic = setting.traffic
    cells = traffic.cells
    item = np.repeat(np.arange(traffic.n_items), np.diff(cells.offsets))
    good = (of_item[item] >= 0) & setting.seen.known[cells.factor]
    known = np.bincount(traffic.query[item], ~good, traffic.n_queries) == 0
    rows = of_item[item[good]]
    return _Expected(
        traffic.query[item[good]].astype(np.int64),
        cells.factor[good].astype(np.int64),
        cells.impressions[good].astype(np.float64),
        _basis(z[rows]),
        rows,
        known,
    )


def _expect_ranking(one: Exposure, z: Floats, ids: list[pa.Array], shown: _Expected) -> _Expected:
    """Documents by their names, also those never shown; of queries that keep what was shown, that."""
    traffic, ranking = one.traffic, one.ranking
    slots = np.flatnonzero((one.item != EMPTY) & (one.item != KEPT))
    at = ranking.offsets[one.query[slots]] + traffic.place[traffic.factor[slots]]
    rows = match([column.take(pa.array(ranking.row)) for column in ranking.ids], ids)[at]
    good = (rows >= 0) & (one.state[slots] != NO_PROPENSITY)
    known = np.bincount(one.query[slots], ~good, traffic.n_queries) == 0
    slots, rows, same = slots[good], rows[good], ranking.kept[shown.query]
    mine = one.query[slots], traffic.factor[slots].astype(np.int64), traffic.shown[slots], _basis(z[rows]), rows
    theirs = [part[same] for part in shown[:5]]
    query, factor, weight, x, document = (np.concatenate(pair) for pair in zip(mine, theirs, strict=True))
    return _Expected(query, factor, weight, x, document, known)


def _spread_documents(rows: list[_Expected], clicks: list[Floats], queries: Flags, spread: float) -> Floats:
    """Covariance by what scores leave open of each document."""
    size = max(int(row.document.max(initial=-1)) for row in rows) + 1
    each = np.stack(
        [
            np.bincount(row.document[queries[row.query]], amounts, size)
            for row, amounts in zip(rows, clicks, strict=True)
        ]
    )
    return np.asarray(spread * each @ each.T)

"""Logs whose truth is known: graded sets under a policy's fixed or varied lists, and worlds drawn for many logs.

The score that is logged is the one that ranked, unless the world breaks it: shifted from query to query, or noisy, in
which case the policy saw more than what is logged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.log import ClickLog, read_log
from elute.ranking.data import RankingData
from elute.simulation.grades import PROPENSITIES, relevance_of_grades
from elute_reproduce.upe.experiment.worlds import take_top

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

O = np.array(PROPENSITIES)  # noqa: E741 (as the papers write it)
RATIO = float(O[0] / O[-1])
RANKINGS, VARIATION = 4, 0.2
"""Lists of a query where they vary, and the noise in what ranks them, in standard deviations of the score."""


class Breaks(NamedTuple):
    """What is done to a score before it is logged, in standard deviations of it."""

    shift: float = 0.0
    """By query."""
    noise: float = 0.0
    """By document."""


class ShownScores(NamedTuple):
    """Lists: (list, position) arrays of the document, -1 after the last, and of the score that is logged; and by list
    its query."""

    document: Ints
    score: Floats
    query: Ints


def show(data: RankingData, scores: Floats, varied: bool, breaks: Breaks, rng: np.random.Generator) -> ShownScores:
    """The lists of a policy with these scores."""
    spread, queries = float(scores.std()), len(data.offsets) - 1
    logged = scores + spread * breaks.noise * rng.normal(size=len(scores))
    logged += spread * breaks.shift * rng.normal(size=queries)[data.query_of]
    times = RANKINGS if varied else 1
    noisy = [scores + varied * VARIATION * spread * rng.normal(size=len(scores)) for _ in range(times)]
    document = np.concatenate([take_top(data, one, len(O))[0] for one in noisy]).astype(np.int64)
    return ShownScores(document, logged[document], np.tile(np.arange(queries), times))


def draw_log(shown: ShownScores, relevance: Floats, pages: int, rng: np.random.Generator) -> ClickLog:
    """Position-based clicks on so many pages of each list."""
    place = np.broadcast_to(np.arange(len(O)), shown.document.shape)
    there = shown.document >= 0
    doc, k = shown.document[there], place[there]
    clicks = rng.binomial(pages, O[k] * relevance[doc])
    query = np.broadcast_to(shown.query[:, None], shown.document.shape)[there]
    table = pa.table(
        {
            "query_id": query,
            "doc_id": doc,
            "position": k + 1,
            "score": shown.score[there],
            "shown": np.full(len(doc), pages),
            "click": clicks,
        }
    )
    return read_log(table, impressions="shown")


def draw_world(queries: int, varied: bool, breaks: Breaks, pages: int, rng: np.random.Generator) -> ClickLog:
    """A log of its own: grades follow the policy's score and what it does not see."""
    documents = 25
    score = rng.normal(size=queries * documents)
    merit = score + 0.7 * rng.normal(size=len(score))
    grades = np.searchsorted(np.quantile(merit, (0.52, 0.75, 0.88, 0.96)), merit)
    offsets = np.arange(queries + 1) * documents
    names = np.arange(len(score)).astype(np.str_)
    empty = np.zeros((len(score), 0), np.float32)
    data = RankingData(empty, grades.astype(np.int32), offsets, names[:queries], names)
    shown = show(data, score, varied, breaks, rng)
    return draw_log(shown, relevance_of_grades(grades, 4), pages, rng)

"""From a log and a table of features to what a ranker learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.storage import MEMORY, Storage
from elute.cells.factors import is_position
from elute.cells.roles import DEFAULT_QUERY, ColumnNames
from elute.errors import EluteError
from elute.estimate.scored.rows import ScoreScale, list_scores
from elute.io.features import Features, read_judged
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.ranking.data import RankingData
from elute.training import weights
from elute.training.held_out import HeldOutClicks, hold_out
from elute.training.identity import make_feature_log
from elute.training.logged_order import read_logged_order
from elute.training.pages import PageColumns, TrainingPages, read_pages
from elute.training.weights import WEIGHTED, Weighing

SESSION = "session_id"
SCORE = "score"
"""Columns taken where none is named."""

_PAGES = 1 << 16
"""Pages weighted at a time."""


class Task(NamedTuple):
    """Pages, features and weights."""

    features: Features
    pages: TrainingPages
    weighing: Weighing | None
    """None where the learner finds propensities on its way."""
    validation: RankingData | None
    test: RankingData | None = None
    held_out: HeldOutClicks | None = None
    """By which rankers are compared where there is no `validation`."""
    logged: Mapping[str, NDArray[np.float64]] = MappingProxyType({})
    """By graded set, the mean position of its documents in the log."""
    storage: Storage = MEMORY
    """Where pages and features lie."""

    def compute_targets(self) -> NDArray[np.float32]:
        """(pages, places): clicks, weighted where weights are known."""
        if self.weighing is None:
            return self.pages.clicks
        weight = self.weighing.weight.astype(np.float32)
        out: NDArray[np.float32] = self.storage.new_array("targets", self.pages.clicks.shape, np.float32)
        for start in range(0, len(out), _PAGES):
            some = slice(start, start + _PAGES)
            out[some] = self.pages.clicks[some] * weight[self.pages.factor[some]]
        return out


@dataclass(frozen=True)
class Inputs:
    """What the user names beside the log."""

    learner: str
    score: ColumnNames | None = None
    score_scale: ScoreScale | None = None
    propensities: pa.Table | None = None
    randomised: ClickLog | None = None
    validation: Sequence[str] = ()
    test: Sequence[str] = ()
    items: Literal["ids", "features"] | None = None
    """What `elute` takes for one item; None: ids, or features where only these join the log."""
    held_out: ClickLog | None = None
    """The part of the log that is not learnt from."""
    clip: float | None = None
    """The least propensity that weights take, the largest one being 1."""

    def make_naive(self) -> Inputs:
        """The same clicks, and nothing of propensities."""
        return Inputs("naive", validation=self.validation, test=self.test, held_out=self.held_out)


def build_task(
    log: ClickLog,
    features: Features,
    inputs: Inputs,
    progress: Progress = silent,
    storage: Storage = MEMORY,
) -> Task:
    """Read the log's pages and whatever else the learner needs, and refuse what it cannot use."""
    if log.roles.click is None or log.roles.impressions is not None:
        why = "has no clicks" if log.roles.click is None else "has counts in its rows"
        raise EluteError(f"{log.engine.label} {why}; a ranker learns from impressions, clicked or not")
    asked = _choose_columns(log, inputs)
    weighing = _find_known_weights(log, inputs)
    key = (log.roles.query or DEFAULT_QUERY, features.key.column_names[-1])
    held, test = (
        read_judged(files, key, features.names) if files else None for files in (inputs.validation, inputs.test)
    )
    progress("reading pages", 0, 0)
    pages = read_pages(log.source, asked, features, log.survey.factors, storage)
    if inputs.learner == "elute":
        alike = partial(make_feature_log, features.values, pages, log.survey.factors)
        weighing = weights.weigh_by_fit(log, alike, inputs.items, progress)
    elif inputs.learner == "score-adjusted":
        weighing = weights.weigh_by_score(log, inputs.score or SCORE, inputs.score_scale or "raw", progress)
    if inputs.clip is not None:
        if weighing is None or inputs.learner == "naive":
            others = ", ".join(name for name in WEIGHTED if name != "naive")
            raise EluteError(
                f"learner '{inputs.learner}' has no propensities before it learns, so that `clip=` has none to clip; "
                f"{others} have"
            )
        weighing = weighing._replace(least=inputs.clip)
    clicks = None
    if inputs.held_out is not None:
        other = inputs.held_out
        unseen = read_pages(other.source, asked._replace(filters=other.filters), features, other.survey.factors)
        clicks = hold_out(unseen, other.survey.factors, features, weighing, pages.documents.shape[1])
    judged = {name: data for name, data in (("validation", held), ("test", test)) if data is not None}
    logged = read_logged_order(log.source, asked, key, judged)
    return Task(features, pages, weighing, held, test, clicks, logged, storage)


def _choose_columns(log: ClickLog, inputs: Inputs) -> PageColumns:
    """The columns to read."""
    label, columns, roles = log.engine.label, log.engine.columns, log.roles
    session = roles.session or SESSION
    if session not in columns:
        raise EluteError(
            f"{label} has no column '{session}'; name the column with the ids of result pages with `session=`"
        )
    score = None
    if inputs.learner == "upe":
        score = SCORE if inputs.score is None else ",".join(list_scores(inputs.score))
        if score not in columns:
            raise EluteError(
                f"{label} has no column '{score}'; upe needs the scores that pages were ranked by (`score=`); "
                "without scores use its variants upe-mrr or upe-dcg, which learn from positions"
            )
    elif inputs.score is not None and inputs.learner != "score-adjusted":
        raise EluteError(f"learner '{inputs.learner}' does not use `score=`; score-adjusted and upe do")
    whole = inputs.learner not in WEIGHTED
    position = _find_position(log, inputs.learner, whole)
    return PageColumns(replace(roles, session=session), position, score, whole, log.filters)


def _find_position(log: ClickLog, learner: str, whole: bool) -> str:
    """The bias column that orders a page."""
    bias = log.roles.bias
    if len(bias) == 1:
        return bias[0]
    if whole:
        raise EluteError(
            f"learner '{learner}' has propensities by position only, not by {', '.join(bias)}; name one column with "
            f"`bias=`, or use one of: {', '.join(WEIGHTED)}"
        )
    found = [column for column in bias if is_position(log.survey.factors, column)]
    if len(found) != 1:
        raise EluteError(f"it is not clear which of {', '.join(bias)} orders a page; name that column 'position'")
    return found[0]


def _find_known_weights(log: ClickLog, inputs: Inputs) -> Weighing | None:
    """Weights that need no fit."""
    for name, value, owner in (
        ("propensities", inputs.propensities, "ipw"),
        ("randomised", inputs.randomised, "ipw-random"),
        ("items", inputs.items, "elute"),
        ("score_scale", inputs.score_scale, "score-adjusted"),
    ):
        if value is not None and inputs.learner != owner:
            raise EluteError(f"learner '{inputs.learner}' does not use `{name}=`; {owner} does")
    if inputs.learner == "ipw":
        if inputs.propensities is None:
            raise EluteError("learner 'ipw' needs `propensities=`, a fit or its folder; 'elute' fits its own")
        return weights.weigh_by_table(log, inputs.propensities)
    if inputs.learner == "ipw-random":
        if inputs.randomised is None:
            raise EluteError("learner 'ipw-random' needs `randomised=`, a log of pages in random order")
        return weights.weigh_by_randomised(log, inputs.randomised)
    return weights.weigh_equally(log) if inputs.learner == "naive" else None

"""From a log and a table of features to what a ranker learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.factors import is_position
from elute.io.features import Features, read_judged
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.ranking import RankingData
from elute.roles import DEFAULT_QUERY
from elute.train import weights
from elute.train.pages import Asked, Pages, read_pages
from elute.train.weights import WEIGHTED, Weighing

SESSION = "session_id"
SCORE = "score"
"""Columns taken where none is named."""


class Task(NamedTuple):
    """Pages, features and weights."""

    features: Features
    pages: Pages
    weighing: Weighing | None
    """None where the learner finds propensities on its way."""
    validation: RankingData | None

    @property
    def targets(self) -> NDArray[np.float32]:
        """(pages, places): clicks, weighted where weights are known."""
        if self.weighing is None:
            return self.pages.clicks
        return self.pages.clicks * self.weighing.weight.astype(np.float32)[self.pages.factor]


@dataclass(frozen=True)
class Inputs:
    """What the user names beside the log."""

    learner: str
    score: str | None = None
    propensities: pa.Table | None = None
    randomised: ClickLog | None = None
    validation: Sequence[str] = ()


def pose(log: ClickLog, source: object, features: Features, inputs: Inputs, progress: Progress = silent) -> Task:
    """Read the log's pages and whatever else the learner needs, and refuse what it cannot use.

    `source` is what the log was read from."""
    if log.roles.click is None or log.roles.impressions is not None:
        why = "has no clicks" if log.roles.click is None else "has counts in its rows"
        raise EluteError(f"{log.engine.label} {why}; a ranker learns from impressions, clicked or not")
    asked = _asked(log, inputs)
    weighing = _weighing(log, inputs, progress)
    held = None
    if inputs.validation:
        key = (log.roles.query or DEFAULT_QUERY, features.key.column_names[-1])
        held = read_judged(inputs.validation, key, features.names)
    progress("reading pages", 0, 0)
    return Task(features, read_pages(source, asked, features, log.survey.factors), weighing, held)


def _asked(log: ClickLog, inputs: Inputs) -> Asked:
    """The columns to read."""
    label, columns, roles = log.engine.label, log.engine.columns, log.roles
    session = roles.session or SESSION
    if session not in columns:
        raise EluteError(f"{label} has no column '{session}'; name the column of a result page's id with --session")
    score = None
    if inputs.learner == "upe":
        score = inputs.score or SCORE
        if score not in columns:
            raise EluteError(
                f"{label} has no column '{score}'; upe needs the scores that pages were ranked by (--score COL); "
                "without scores its variants upe-mrr and upe-dcg apply, which learn from positions"
            )
    elif inputs.score is not None:
        raise EluteError(f"learner '{inputs.learner}' has no use for --score; upe has")
    whole = inputs.learner not in WEIGHTED
    return Asked(replace(roles, session=session), _position(log, inputs.learner, whole), score, whole)


def _position(log: ClickLog, learner: str, whole: bool) -> str:
    """The bias column that orders a page."""
    bias = log.roles.bias
    if len(bias) == 1:
        return bias[0]
    if whole:
        raise EluteError(
            f"learner '{learner}' has propensities by position only, not by {', '.join(bias)}; name one column with "
            f"--bias, or use one of: {', '.join(WEIGHTED)}"
        )
    found = [column for column in bias if is_position(log.survey.factors, column)]
    if len(found) != 1:
        raise EluteError(f"which of {', '.join(bias)} orders a page is not clear; call that one position")
    return found[0]


def _weighing(log: ClickLog, inputs: Inputs, progress: Progress) -> Weighing | None:
    for name, value, owner in (
        ("propensities", inputs.propensities, "ipw"),
        ("randomised", inputs.randomised, "ipw-random"),
    ):
        if value is not None and inputs.learner != owner:
            raise EluteError(f"learner '{inputs.learner}' has no use for --{name}; {owner} has")
    if inputs.learner == "ipw":
        if inputs.propensities is None:
            raise EluteError("learner 'ipw' needs --propensities, the folder of an 'elute fit'; 'elute' fits its own")
        return weights.given(log, inputs.propensities)
    if inputs.learner == "ipw-random":
        if inputs.randomised is None:
            raise EluteError("learner 'ipw-random' needs --randomised, a log of pages in random order")
        return weights.randomised(log, inputs.randomised)
    if inputs.learner == "elute":
        return weights.fitted(log, progress)
    return weights.unweighted(log) if inputs.learner == "naive" else None

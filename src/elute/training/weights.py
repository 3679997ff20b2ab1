"""What a click weighs, where propensities are known before the ranker is learnt (Eq. 3a of the UPE paper).

A click under factor t weighs o_max / o(t). Factors may be more than positions (position × device, say): the weight goes
with the impression, so any learner of weighted clicks can use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import describe, to_rows
from elute.cells.roles import ColumnNames
from elute.checking.check import Check, check
from elute.errors import EluteError
from elute.estimate.models.given import PROPENSITY, match_values, refuse_factors
from elute.estimate.models.pbm import PBM
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.scored.rows import ScoreScale
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.repair.merge_plan import plan_merges

Floats = NDArray[np.float64]

WEIGHTED = ("naive", "ipw", "ipw-random", "elute", "score-adjusted")
"""The learners whose propensities are known before the ranker is learnt."""

_MERGES = 3


class Weighing(NamedTuple):
    """Propensities by factor of the log, and where they come from."""

    factors: pa.Table
    propensity: Floats
    """The largest is 1; 0 for a factor without a click."""
    log_se: Floats | None
    note: str
    """What the user must know of them; empty where there is nothing."""
    least: float = 0.0
    """What a propensity counts at least, when a click is weighed."""

    @property
    def weight(self) -> Floats:
        """What a click weighs; there is none where the propensity is 0."""
        some = self.propensity > 0
        return np.divide(1.0, np.maximum(self.propensity, self.least), out=np.zeros_like(self.propensity), where=some)

    def to_list(self) -> list[dict[str, Any]]:
        """A row a factor: the bias columns, `propensity` and, where they are known, `log_se`."""
        out = [
            factor | {PROPENSITY: float(value)}
            for factor, value in zip(
                to_rows(self.factors, range(self.factors.num_rows)), self.propensity.tolist(), strict=True
            )
        ]
        if self.log_se is not None:
            for row, error in zip(out, self.log_se.tolist(), strict=True):
                row["log_se"] = error if np.isfinite(error) else None
        return out


def weigh_equally(log: ClickLog) -> Weighing:
    """Naive: every click counts the same."""
    factors = log.survey.factors
    return Weighing(factors, np.ones(factors.num_rows), None, "")


def weigh_by_table(log: ClickLog, table: pa.Table, log_se: str = "log_se") -> Weighing:
    """Propensities from elsewhere: a table with the bias columns and `propensity`, as a fit writes it."""
    factors = log.survey.factors
    propensity = match_values(factors, table, PROPENSITY)
    refuse_factors(factors, propensity < 0, "a propensity below 0 for", "propensities are probabilities, up to scale")
    useless = (propensity == 0) & (log.survey.clicks > 0)
    refuse_factors(
        factors, useless, "a propensity of 0, but clicks, for", "fit them anew, or leave them out of the log"
    )
    errors = _read_errors(factors, table, log_se)
    return Weighing(factors, propensity / propensity.max(), errors, "")


def weigh_by_randomised(log: ClickLog, random: ClickLog) -> Weighing:
    """Propensities from pages in random order: there relevance is alike under every factor on average, and click rates
    are propensities up to scale."""
    survey = random.survey
    refuse_factors(
        survey.factors, survey.clicks == 0, "on randomised pages there is no click for", "collect more of such pages"
    )
    rate = survey.clicks / survey.impressions
    return weigh_by_table(log, survey.factors.append_column(PROPENSITY, pa.array(rate)))


def weigh_by_score(log: ClickLog, score: ColumnNames, scale: ScoreScale, progress: Progress = silent) -> Weighing:
    """Propensities from clicks adjusted for the score that pages were ranked by. No item need come back elsewhere; the
    note says whether the log bears out what this assumes."""
    fit = ScoreAdjusted(score=score, score_scale=scale, progress=progress).fit(log)
    return Weighing(fit.factors_, fit.propensity_, fit.propensity_log_se_, fit.score_test_.sentence.removesuffix("."))


def weigh_by_fit(
    log: ClickLog, alike: Callable[[], ClickLog], items: str | None = None, progress: Progress = silent
) -> Weighing:
    """Propensities by the fixed-effect fit on the same clicks: what varies within an item identifies them, whatever the
    logging policy does. A log that is not recoverable is repaired by the cheapest merges, and the note says so.

    An item is what the log's ids name (`items` = "ids") or whatever has the same features ("features"): the log that
    `alike` gives. None: ids, or features where ids leave the log in more components.
    """
    by_ids = check(log, progress=progress)
    if items == "ids" or (items is None and by_ids.recoverable):
        return _fit_repaired(by_ids, [], progress)
    with alike() as same_features:
        by_features = check(same_features, progress=progress)
        if items is None and by_features.components >= by_ids.components:
            return _fit_repaired(by_ids, [], progress)
        note = (
            f"items are documents with equal features, which leaves {by_features.components:,} of "
            f"{by_ids.components:,} components; that is right where relevance depends on these features alone"
        )
        found = _fit_repaired(by_features, [note], progress)
    factors = log.survey.factors
    numbered = found.factors.append_column("elute_row", pa.array(np.arange(len(found.propensity))))
    order = match_values(factors, numbered, "elute_row").astype(np.int64)
    return Weighing(factors, found.propensity[order], None if found.log_se is None else found.log_se[order], found.note)


def _fit_repaired(verdict: Check, notes: list[str], progress: Progress) -> Weighing:
    """The fit, after merging where the log is not recoverable."""
    plan = None if verdict.recoverable else plan_merges(verdict)
    fit = PBM(progress=progress).fit(verdict.counts, plan)
    refuse_factors(
        fit.factors_,
        np.isnan(fit.propensity_),
        "the clicks leave open the propensities of",
        "fit with `prior='smooth'`, then train with `learner='ipw'` and `propensities=`",
    )
    if plan is not None:
        pairs = "; ".join(f"{describe(pair.a)} = {describe(pair.b)}" for pair in plan.pairs[:_MERGES])
        more = f" and {len(plan.pairs) - _MERGES:,} more" if len(plan.pairs) > _MERGES else ""
        notes.append(
            f"the log is not recoverable ({plan.components_before:,} components): propensities were made to agree, "
            f"{pairs}{more}; where that is not true, the ranking is biased"
        )
    return Weighing(fit.factors_, fit.propensity_, fit.propensity_log_se_, ". ".join(notes))


def _read_errors(factors: pa.Table, table: pa.Table, column: str) -> Floats | None:
    if column not in table.column_names:
        return None
    try:
        return match_values(factors, table, column)
    except EluteError:  # some factor has no error: leave them all out
        return None

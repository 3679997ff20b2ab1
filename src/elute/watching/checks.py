"""What a period, or a window of several, tells by itself: the verdict of a check, and its propensities."""

from __future__ import annotations

from typing import Any

import numpy as np

from elute.cells.factors import to_rows
from elute.checking.check import Check, check
from elute.known.precision import shorten
from elute.log import ClickLog
from elute.progress import Progress, silent

_LISTED = 64
"""Factors whose propensities are listed: those with most impressions."""


def check_log(log: ClickLog, progress: Progress = silent) -> dict[str, Any]:
    """The fields `check` of a period and of a window."""
    verdict = check(log, progress=progress)
    known = verdict.precision
    return {
        "rung": verdict.rung,
        "components": verdict.components,
        "factors": len(verdict.structure.root),
        "queries": verdict.structure.queries,
        "rankable_share": None if verdict.ranking is None else verdict.ranking.share,
        "ordered_share": None
        if known is None or known.shares.queries_ordered is None
        else shorten(known.shares.queries_ordered),
        "known_share": None if known is None else shorten(known.impressions_known_share),
        "warnings": {concern.code: concern.count for concern in verdict.warnings},
        "propensities": _list_propensities(verdict),
    }


def _list_propensities(verdict: Check) -> list[dict[str, Any]]:
    """With the standard error of the logarithm; None where nothing determines them."""
    known, survey = verdict.precision, verdict.log.survey
    if known is None:
        return []
    largest = np.sort(np.argsort(-survey.impressions, kind="stable")[:_LISTED])
    merged = known.sample.problem.merged[largest]
    rows = to_rows(survey.factors, largest)
    lost = known.unestimable[merged]
    return [
        {
            "factor": row,
            "propensity": None if lost[at] else shorten(known.propensity[merged[at]]),
            "log_se": None
            if lost[at] or not np.isfinite(known.log_se[merged[at]])
            else shorten(known.log_se[merged[at]]),
        }
        for at, row in enumerate(rows)
    ]

"""From a check to a score plan: links and score are combined, and what came out is written down."""

from __future__ import annotations

import numpy as np

from elute.cells.factors import to_rows
from elute.cells.roles import ColumnNames
from elute.checking.check import Check
from elute.errors import EluteError
from elute.estimate.combined.model import ScoreLinked
from elute.estimate.scored.rows import ScoreScale
from elute.identify.assumed import AssumedScore
from elute.identify.components import Components
from elute.known.precision import TARGET
from elute.progress import Progress, silent
from elute.repair.files.score_contents import Floats, Row, ScoreContents, assume
from elute.repair.plan import ScorePlan


def plan_score(
    check: Check,
    score: ColumnNames,
    *,
    score_scale: ScoreScale = "raw",
    labels: Floats | None = None,
    seed: int = 0,
    date: str | None = None,
    progress: Progress = silent,
) -> ScorePlan:
    """Components on one scale by a score; ratios within from items, and with the score where these are loose.

    `labels`: relevance as judged, by item of the counts, to test the score by."""
    log = check.log
    if log.roles.click is None:
        raise EluteError(f"{log.engine.label} has no clicks, which a score is compared with; name their column")
    if log.roles.formula is not None:
        raise EluteError(f"a score plan takes bias columns, not the formula '{log.roles.formula}': join them by commas")
    own = ScoreLinked(score=score, score_scale=score_scale, labels=labels, target=TARGET, seed=seed, progress=progress)
    fit = own.fit(log)
    components, said = _list_components(check.found, fit), fit.summarise_score()
    links, propensities = _list_links(check, fit), _list_propensities(fit)
    contents = ScoreContents(said, links, components, propensities, assume(said, components))
    return ScorePlan(log.provenance(date), check.components, 1, 0.0, contents)


def find_assumption(found: Components, fit: ScoreLinked) -> AssumedScore:
    """What a fit rests on, of a log with these components."""
    return assume(fit.summarise_score(), _list_components(found, fit))


def _list_components(found: Components, fit: ScoreLinked) -> tuple[Row, ...]:
    """The log's, which are the fit's."""
    return tuple(
        {
            "factors": int(factors),
            "impressions": int(shown),
            "ratios": None if factors == 1 else "items" if fit.linked_.known[number] else "both",
        }
        for number, (factors, shown) in enumerate(zip(found.factors, found.impressions, strict=True))
    )


def _list_links(check: Check, fit: ScoreLinked) -> tuple[Row, ...]:
    """Between factors of most clicks, where there are any."""
    clicks, part = check.log.survey.clicks, check.found.of_factor
    best = [int(np.where(part == number, clicks, -1).argmax()) for number in range(check.components)]
    main = int(check.found.impressions.argmax())
    rows = to_rows(fit.factors_, best)
    errors = fit.linked_.errors(best[main])
    out = []
    for number, code in enumerate(best):
        if number != main:
            known = bool(fit.propensity_[code] > 0 and fit.propensity_[best[main]] > 0)
            ratio = float(fit.propensity_[code] / fit.propensity_[best[main]]) if known else None
            error = float(errors[code]) if known else None
            out.append({"a": rows[number], "b": rows[main], "ratio": ratio, "log_se": error})
    return tuple(out)


def _list_propensities(fit: ScoreLinked) -> tuple[Row, ...]:
    errors = [None if np.isnan(error) else error for error in fit.propensity_log_se_.tolist()]
    rows = to_rows(fit.factors_, range(fit.factors_.num_rows))
    values = zip(rows, fit.propensity_.tolist(), errors, strict=True)
    return tuple({"factor": row, "propensity": value, "log_se": error} for row, value, error in values)

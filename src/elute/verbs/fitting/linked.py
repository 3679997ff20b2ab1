"""A fit under a score plan."""

from __future__ import annotations

from elute.auditing.assumptions.brief import assess_briefly
from elute.auditing.labels import TableSource, read_relevance
from elute.checking.rung import find_rung
from elute.errors import EluteError
from elute.estimate.combined.model import ScoreLinked
from elute.fits.fit import Fit
from elute.identify.components import find_components
from elute.known.precision import measure_placed
from elute.known.sample import sample_counts
from elute.log import ClickLog
from elute.progress import Progress
from elute.repair.plan import ScorePlan
from elute.repair.scored.make import find_assumption


def fit_linked(
    log: ClickLog,
    plan: ScorePlan,
    model: str,
    labels: TableSource | None,
    progress: Progress,
    *,
    seed: int | None,
    **refused: object,
) -> Fit:
    """The position-based model under a score plan: links and score are combined anew, by this log's own clicks."""
    for option, value in {"model": None if model == "pbm" else model, **refused}.items():
        if value not in (None, False):
            why = f"a fit under a score plan has no `{option}=`: it is of pbm, as the score completes it"
            drawn = option in ("bootstrap", "cluster")
            raise EluteError(why + ("; without the plan, `model='score-adjusted'` has" if drawn else ""))
    judged = None if labels is None else read_relevance(labels, log, progress)
    own = ScoreLinked(score=plan.score, score_scale=plan.score_scale, labels=judged, seed=seed or 0, progress=progress)
    estimator = own.fit(log)
    counts, survey = log.counts(progress), log.survey
    found = Fit.from_estimator(model, estimator, log)
    known = measure_placed(sample_counts(counts, None), estimator.propensity_, estimator.propensity_log_se_)
    assumed = find_assumption(find_components(log.connect(progress), survey.factors, survey.impressions), estimator)
    found.summary |= {"rung": find_rung(True, known, assumed.doubted), "precision": known.to_dict()}
    found.summary |= {"assumption": assumed.to_dict()}
    found.summary["assumptions"] = assess_briefly(counts, model, progress=progress).to_dict()
    return found

"""`elute.fit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from elute.auditing.assumptions.brief import assess_briefly
from elute.auditing.labels import TableSource, read_relevance
from elute.bounds.assumptions import Assumptions
from elute.bounds.bounds import find_bounds
from elute.cells.counts import Counts
from elute.cells.roles import ColumnNames
from elute.checking.measured import measure_log
from elute.checking.rung import Rung, describe_unestimable, find_rung
from elute.errors import EluteError, NotEstimable, NotRecoverable
from elute.estimate.inference.bootstrap import Bootstrap
from elute.estimate.inference.bootstrap import bootstrap as draw
from elute.estimate.inference.scored import bootstrap_score
from elute.estimate.models.base import Estimator
from elute.estimate.models.pbm import PBM
from elute.estimate.models.registry import MODELS, build
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.scored.rows import ScoreScale
from elute.fits.fit import Fit
from elute.fits.propensities import PropensitySource, read_propensities
from elute.fits.warm import EarlierFit
from elute.identify.components import find_components
from elute.known.precision import TARGET, Precision, measure_placed
from elute.known.sample import sample_counts
from elute.log import ClickLog, LogOptions, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.repair.plan import MergePlan, ScorePlan
from elute.verbs.fitting.linked import fit_linked
from elute.verbs.fitting.warm import refuse_warm, warm_up
from elute.verbs.holdout import TIME, By, score_fit, split_log
from elute.verbs.source import PlanSource, as_fit_plan

SESSION_MODELS = ("dctr", "rdctr", "cascade", "dcm", "ccm", "ubm", "sdbn", "dbn", "ncm", "cacm")
"""As in `elute.clicks`, less the pbm that is among the others; they read whole pages and need `session=`."""


@takes()
def fit(
    log: LogSource,
    model: str = "pbm",
    plan: PlanSource | None = None,
    *,
    allow_unidentified: bool = False,
    seed: int | None = None,
    tolerance: float | None = None,
    max_iter: int | None = None,
    prior: Literal["smooth"] | None = None,
    relevance_prior: Literal["auto", "beta", "none"] | None = None,
    propensities: PropensitySource | None = None,
    warm: EarlierFit | None = None,
    clip: float | Literal["auto"] | None = None,
    self_normalised: bool | None = None,
    policy_aware: bool | None = None,
    score: ColumnNames | None = None,
    score_scale: ScoreScale | None = None,
    labels: TableSource | None = None,
    bootstrap: int | None = None,
    cluster: str | None = None,
    bounds: bool = False,
    monotone: str | Sequence[str] | None = None,
    at_most: str | Sequence[str] | None = None,
    holdout: float | None = None,
    by: By | None = None,
    time: str | None = None,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Fit:
    """Propensities of factors and relevance of items, with standard errors.

    A log that is not recoverable is refused with `NotRecoverable`, unless a merge or score `plan` repairs it or
    `allow_unidentified` says that each component is to have its own scale; likewise, with `NotEstimable`, one whose
    clicks do not determine what its items link. The baselines naive and ctr take any log.
    Where it takes about a second, what the model assumes of clicks is tested (`assumptions` of the summary). Other
    parameters are the model's, left at its own choice where they are None; one that it does not have is refused.
    `relevance_prior="none"`: no prior on relevance (pbm; the default is "auto"). `propensities`: of ipw and affine-ipw,
    a fit, its folder, a file or a table. `warm`: of pbm, the fit of nearly the same log, such as yesterday's, to start
    from; the result is the same to six digits, after fewer rounds. `score`: of score-adjusted, the column that results
    were ranked by. `labels` (items and their `grade` or `relevance`) test it further.
    `bootstrap`: error bars from so many draws of clusters, by default of queries.
    `bounds`: fit each component at its own scale, and say what bounds these scales; so do the assumptions `monotone`
    and `at_most`, as for `elute.check`. `propensities` are then known ratios.
    `holdout`: a share of the log that is not fitted to, and predicted (`holdout` of the summary); `by`: pages, queries,
    or the last by the column `time`. `columns`: as for `elute.read_log`.
    """
    opened = as_log(log, **columns)
    if opened.roles.click is None:
        raise EluteError(f"{opened.engine.label} has no clicks to fit")
    if holdout is None and (by or time) is not None:
        raise EluteError("`by=` and `time=` say what `holdout=` holds out: give that too")
    if holdout is not None:
        train, held = split_log(opened, holdout, by or "session", time or TIME, seed or 0)
        found = fit(
            train,
            model,
            plan,
            allow_unidentified=allow_unidentified,
            seed=seed,
            tolerance=tolerance,
            max_iter=max_iter,
            prior=prior,
            relevance_prior=relevance_prior,
            propensities=propensities,
            warm=warm,
            clip=clip,
            self_normalised=self_normalised,
            policy_aware=policy_aware,
            score=score,
            score_scale=score_scale,
            labels=labels,
            bootstrap=bootstrap,
            cluster=cluster,
            bounds=bounds,
            monotone=monotone,
            at_most=at_most,
            progress=progress,
        )
        with held:
            scores = score_fit(found, train, held, progress)
        found.summary["holdout"] = {"share": holdout, "by": by or "session", **scores}
        given = found.provenance.options or {}
        found.provenance = found.provenance.with_options(**given, holdout=holdout, by=by, time=time)
        return found
    options: dict[str, Any] = {
        "seed": seed,
        "tolerance": tolerance,
        "max_iter": max_iter,
        "prior": prior,
        "relevance_prior": relevance_prior,
        "clip": clip,
        "self_normalised": self_normalised,
        "policy_aware": policy_aware,
        "score": score,
        "score_scale": score_scale,
    }
    others: dict[str, Any] = {"propensities": propensities, "bootstrap": bootstrap, "cluster": cluster}
    others |= {"bounds": bounds, "monotone": monotone or None, "at_most": at_most or None}
    refuse_warm(model, warm)
    if model in SESSION_MODELS:
        others["labels"] = labels is not None
        return _fit_sessions(opened, model, progress, **options, **others, plan=plan)
    if model not in MODELS:
        raise EluteError(f"no model '{model}'; there are: {', '.join((*MODELS, *SESSION_MODELS))}")
    chosen = as_fit_plan(plan)
    if isinstance(chosen, ScorePlan):
        found = fit_linked(opened, chosen, model, labels, progress, **options, **others, warm=warm is not None)
        named, judging = (one if isinstance(one, str | Path) else None for one in (plan, labels))
        found.provenance = found.provenance.with_options(seed=seed, plan=named, labels=judging)
        return found
    bounded, known_ratios = bool(bounds or monotone or at_most), read_propensities(propensities)
    if labels is not None and model != "score-adjusted":
        raise EluteError(f"model '{model}' has no `labels=`; score-adjusted has, and `elute.audit` takes any fit")
    judged = None if labels is None else read_relevance(labels, opened, progress)
    known_ones = None if bounded else known_ratios
    estimator = build(model, **options, propensities=known_ones, labels=judged, progress=progress)
    warmed = warm_up(estimator, warm, opened)
    if bounded and estimator.propensities_are != "estimated":
        raise EluteError(f"model '{model}' has no `bounds=`; pbm has")
    assumed = Assumptions.collect(monotone, at_most, known_ratios if bounded else None)
    assumed.require(opened.survey.factors)
    if (bootstrap is not None or cluster is not None) and not isinstance(estimator, PBM | ScoreAdjusted):
        raise EluteError(f"model '{model}' has no `bootstrap=`; pbm and score-adjusted have")
    if cluster is not None and isinstance(estimator, ScoreAdjusted):
        raise EluteError("score-adjusted draws queries, within which its scores are: leave `cluster=` out")
    if cluster is not None and bootstrap is None:
        raise EluteError("`cluster=` says what `bootstrap=` draws: give that too")
    merges = chosen
    counts = _count(opened, estimator, bootstrap is None, progress)
    known = measure_log(opened, merges, TARGET, progress)
    refuses = not (allow_unidentified or bounded) and estimator.propensities_are == "estimated"
    rung = _judge(opened, merges, known, refuses, progress)
    drawn = None
    if bootstrap is None or not isinstance(estimator, PBM):
        estimator.fit(opened, merges, allow_unidentified=True)
        if bootstrap is not None and isinstance(estimator, ScoreAdjusted):
            drawn = bootstrap_score(estimator, bootstrap, estimator.seed, progress)
            estimator.report_errors(drawn.propensity_log_se, drawn.relevance_log_se)
    else:
        drawn = _bootstrap(estimator, opened, merges, bootstrap, cluster, progress)
    if drawn is None and known is not None and known.dependence and estimator.propensities_are == "estimated":
        estimator.report_dependence(known.dependence.effect[known.sample.problem.merged])
    found = Fit.from_estimator(model, estimator, opened, drawn, plan=merges)
    found.provenance = found.provenance.with_options(
        **options,
        plan=plan if isinstance(plan, str | Path) else None,
        propensities=propensities if isinstance(propensities, str | Path) else None,
        warm=warm if isinstance(warm, str | Path) else None,
        labels=labels if isinstance(labels, str | Path) else None,
        bootstrap=bootstrap,
        cluster=cluster,
        allow_unidentified=allow_unidentified,
        bounds=bounds,
        monotone=assumed.monotone or None,
        at_most="; ".join(assumed.at_most) or None,
    )
    if isinstance(estimator, ScoreAdjusted) and counts is not None:  # it does not rest on what items link
        known = measure_placed(sample_counts(counts, None), estimator.propensity_, estimator.propensity_log_se_)
        rung = find_rung(True, known, estimator.score_test_.verdict != "holds")
    found.summary |= {"rung": rung, "precision": None if known is None else known.to_dict()}
    if warmed is not None:
        found.summary["warm"] = warmed.to_dict()
    if bounded and known is not None:
        across = find_bounds(known, assumed, progress)
        found.bounds, found.summary["bounds"] = across.tabulate(estimator.propensity_), across.to_dict()
    if drawn is not None:
        found.summary["bootstrap"] = {"cluster": cluster or opened.roles.query, **drawn.to_dict()}
    if estimator.propensities_are != "ignored":
        planned = counts if counts is None or merges is None else merges.apply(counts)
        found.summary["assumptions"] = assess_briefly(planned, model, progress=progress).to_dict()
    return found


def _count(log: ClickLog, estimator: Estimator, streams: bool, progress: Progress) -> Counts | None:
    """Count the log, in partitions where that will do; None where it does."""
    by_partition = isinstance(estimator, PBM) and estimator.by_partition and streams
    return None if by_partition and log.partitions(progress) else log.counts(progress, names=True)


def _judge(log: ClickLog, plan: MergePlan | None, known: Precision | None, refuses: bool, progress: Progress) -> Rung:
    """The rung of a log; one below what can be fitted is refused before anything is, if `refuses`."""
    parts = len(find_components(log.connect(progress), log.survey.factors, log.survey.impressions, plan))
    survey = log.survey
    merged = None if plan is None else plan.measure_merged(survey.factors, survey.impressions)
    assumed = merged is not None and bool(merged.caution)
    rung = find_rung(parts == 1, known, assumed)
    if refuses and rung == "apart":
        raise NotRecoverable(parts)
    if refuses and rung == "linked" and known is not None:
        raise NotEstimable(describe_unestimable(known))
    return rung


def _bootstrap(
    model: PBM, log: ClickLog, plan: MergePlan | None, replicates: int, cluster: str | None, progress: Progress
) -> Bootstrap:
    """Fit the model and report the bootstrap's errors with it. Where each item has one query, drawing queries is
    drawing items, and the log need not be read again."""
    counts, column = log.counts(progress), cluster or log.roles.query
    if column is None:
        raise EluteError("the log has no query column to draw by: name one with `cluster=`")
    by_query = column == log.roles.query and log.roles.items_within_queries
    clusters = None if by_query else counts.read_clusters(column).refuse_nulls(column)
    drawn = draw(
        model,
        counts,
        clusters,
        plan=plan,
        replicates=replicates,
        seed=model.seed,
        allow_unidentified=True,
        progress=progress,
    )
    model.report_errors(drawn.propensity_log_se, drawn.relevance_log_se)
    return drawn


def _fit_sessions(
    log: ClickLog, model: str, progress: Progress, *, seed: int | None, max_iter: int | None, **refused: object
) -> Fit:
    """A session click model; `refused`: parameters of other models, which must not be given."""
    from elute.sessions.fit import fit_log

    if log.roles.formula is not None:
        raise EluteError(f"model '{model}' reads pages, not the formula '{log.roles.formula}': name the position alone")
    for option, value in refused.items():
        if value not in (None, False):
            raise EluteError(f"model '{model}' has no `{option}=`")
    found = Fit.from_sessions(fit_log(log, model, seed=seed or 0, max_iter=max_iter, progress=progress), log)
    found.provenance = found.provenance.with_options(seed=seed, max_iter=max_iter)
    return found

"""`elute.audit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, Unpack, get_args

from elute.auditing.assumptions.battery import assess_assumptions
from elute.auditing.assumptions.draws.clusters import read_dependent
from elute.auditing.assumptions.finding import Finding
from elute.auditing.assumptions.groups import read_groups
from elute.auditing.audit import Audit
from elute.auditing.cmip.metric import Name
from elute.auditing.comparison import compare
from elute.auditing.labels import (
    GRADE,
    NegativeGrades,
    Scores,
    TableSource,
    read_item_labels,
    read_labels,
    read_log_scores,
    read_scores,
    settle_negative_grades,
)
from elute.auditing.policy import rank_by_log
from elute.auditing.predictions import Subject
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.fits.fit import Fit
from elute.log import ClickLog, LogOptions, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.verbs.holdout import find_held_out

FitSource: TypeAlias = Fit | str | Path
"""A fit, or the folder of one."""


@takes()
def audit(
    fits: FitSource | Sequence[FitSource] | None,
    log: LogSource,
    *,
    labels: TableSource | None = None,
    grade: str = GRADE,
    negative_grades: NegativeGrades = "refuse",
    policy_scores: TableSource | None = None,
    shifted_log: LogSource | None = None,
    assumptions: bool = False,
    groups: str | None = None,
    cluster: str | None = None,
    estimator: Name = "knn",
    seed: int = 0,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Audit:
    """Is a fit debiased, which of several is to be trusted, and do their assumptions hold?

    Clicks of `log` are predicted (perplexity); where all fits are of this log with the same part held out, those of
    that part. With `labels` (items and their `grade`; the log itself will do;
    `negative_grades="zero"` takes grades below 0 for "not relevant") relevance is compared with grades (nDCG), and what
    it still shares with the order of the logging policy beyond the grades is measured (CMIP, by `estimator`) and tested
    against what noise alone makes of it (excess). `policy_scores`: what the policy ranked by, or ranks; by default the
    log's mean positions, or where it has none its mean `score`.
    `shifted_log`: clicks under another policy, to predict too. `assumptions`: test the click model itself on the log,
    which needs no fit; `groups`: by what column position effects might differ; `cluster`: users or sessions, whose
    clicks depend on each other, so that tests keep their level. `columns`: as for `elute.read_log`.
    """
    opened = as_log(log, **columns)
    if opened.roles.click is None:
        raise EluteError(f"{opened.engine.label} has no clicks to predict")
    given = [fits] if isinstance(fits, Fit | str | Path) else list(fits or ())
    if not given and not assumptions:
        raise EluteError("there is nothing to audit: give `fits=`, or `assumptions=True`")
    if groups is not None and not assumptions:
        raise EluteError("`groups=` goes with `assumptions=True`")
    if cluster is not None and not assumptions:
        raise EluteError("`cluster=` goes with `assumptions=True`")
    if negative_grades not in get_args(NegativeGrades):
        raise EluteError(f"`negative_grades=` is {negative_grades!r}; there are: {', '.join(get_args(NegativeGrades))}")
    findings = tuple(_test(opened, groups, cluster, labels, grade, seed, progress)) if assumptions else None
    found = None
    if given:
        loaded = [fit if isinstance(fit, Fit) else Fit.load(fit) for fit in given]
        subjects = [Subject.from_fit(fit, opened.roles) for fit in loaded]
        shifted = None if shifted_log is None else as_log(shifted_log, **columns)
        judged = None
        if labels is not None:
            judged = settle_negative_grades(read_labels(labels, opened.roles, grade), negative_grades)
        scores = None if judged is None else _read_policy(opened, policy_scores, progress)
        held = find_held_out(loaded, opened)
        if held is None:
            found = compare(subjects, opened, shifted, judged, scores, estimator, seed, progress)
        else:
            with held[0] as unseen:
                found = compare(subjects, unseen, shifted, judged, scores, estimator, seed, progress).add_note(held[1])
    made = opened.provenance().with_options(
        labels=labels,
        grade=None if grade == GRADE else grade,
        negative_grades=None if negative_grades == "refuse" else negative_grades,
        policy_scores=policy_scores,
        shifted_log=shifted_log.source if isinstance(shifted_log, ClickLog) else shifted_log,
        groups=groups,
        cluster=cluster,
        estimator=None if estimator == "knn" else estimator,
        seed=seed or None,
    )
    return Audit(found, findings, made.options)


def _read_policy(log: ClickLog, given: TableSource | None, progress: Progress) -> Scores | None:
    """What the logging policy ranked by."""
    if given is not None:
        return read_scores(given, log.roles)
    return rank_by_log(log.counts(progress, names=True), log.engine.label) or read_log_scores(log)


def _test(
    log: ClickLog,
    column: str | None,
    cluster: str | None,
    labels: TableSource | None,
    grade: str,
    seed: int,
    progress: Progress,
) -> list[Finding]:
    """The findings on a log. `column`: by what position effects might differ; `cluster`: within what clicks depend on
    each other."""
    counts = log.counts(progress, names=labels is not None)
    groups = None if column is None else read_groups(counts, column)
    clusters = None if cluster is None else read_dependent(counts, cluster)
    relevance = None if labels is None else read_item_labels(labels, counts.items, log.roles, grade)
    fit = PBM(relevance_prior="none", progress=progress).fit(counts, allow_unidentified=True)
    return assess_assumptions(
        counts, fit, groups=groups, labels=relevance, seed=seed, progress=progress, clusters=clusters
    )

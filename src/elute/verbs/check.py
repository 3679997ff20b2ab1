"""`elute.check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from elute.bounds.assumptions import Assumptions
from elute.cells.counts import Counts
from elute.cells.factors import describe, to_rows
from elute.checking.check import Check
from elute.checking.check import check as check_log
from elute.errors import EluteError
from elute.fits.propensities import PropensitySource, read_propensities
from elute.known.precision import TARGET
from elute.log import ClickLog, LogOptions, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.repair.plan import MergePlan
from elute.verbs.source import PlanSource, as_merge_plan, as_plan

if TYPE_CHECKING:  # a plain check does without what these import
    from elute.bounds.bounds import Bounds
    from elute.estimate.inference.certificate import Certificate
    from elute.identify.generic.identifiability import GenericIdentifiability


@takes()
def check(
    log: LogSource,
    *,
    plan: PlanSource | None = None,
    explore: bool = False,
    curve: bool = False,
    precision: bool = False,
    model: str | None = None,
    target_log_se: float = TARGET,
    bounds: bool = False,
    monotone: str | Sequence[str] | None = None,
    at_most: str | Sequence[str] | None = None,
    propensities: PropensitySource | None = None,
    seed: int = 0,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Check:
    """Can relevance be recovered from this log, for which queries, and how much of it is known?

    `log`: a path, a table, a folder of counts, counts or a log; `columns` as for `elute.read_log`. `plan`: as if this
    repair plan, or the file of one, had been carried out. `explore`: also for every subset of the bias columns.
    `curve`: also for samples of the log. `precision`: also how precisely propensities are determined, and by what.
    `model`: also for affine (trust bias) or vector:D clicks, not only r·o, or for a session model (ubm, dbn, ccm, dcm,
    sdbn, cascade), with `session`. `target_log_se`: a propensity is
    known when the standard error of its logarithm is at most that. `seed`: of what `curve` and `model` draw.
    `bounds`: also what can be said across components; so do the assumptions `monotone` (columns with which propensities
    do not rise), `at_most` ("position=2 <= position=1") and `propensities` (a fit, its folder, a file or a table: known
    ratios). They change neither the verdict nor the rung.
    """
    opened, links = as_log(log, **columns), None if plan is None else as_plan(plan)
    _refuse_with_formula(opened, bounds=bounds or bool(monotone or at_most), curve=curve, model=model)
    assumed = None
    if bounds or monotone or at_most or propensities is not None:
        assumed = Assumptions.collect(monotone, at_most, read_propensities(propensities))
        assumed.require(opened.survey.factors)
    verdict = check_log(
        opened,
        plan=links,
        explore=explore,
        curve=curve,
        target_log_se=target_log_se,
        seed=seed,
        progress=progress,
    )
    if precision:
        verdict = replace(verdict, certificate=_certify(verdict, progress))
    if assumed is not None:
        verdict = replace(verdict, bounds=_bound(verdict, assumed, progress))
    return verdict if model is None else replace(verdict, generic=_identify(verdict, model, seed))


def _refuse_with_formula(log: ClickLog, **asked: object) -> None:
    """What looks at factors one by one, whatever ties them."""
    for option, value in asked.items():
        if value and log.roles.formula is not None:
            raise EluteError(
                f"`{option}=` takes every combination of bias values for itself: leave it out, or join the columns of "
                f"`bias=` by commas, not '{log.roles.formula}'"
            )


def certify(
    log: LogSource, plan: PlanSource | None = None, *, progress: Progress = silent, **columns: Unpack[LogOptions]
) -> Certificate:
    """How precisely a log determines its propensities, and by what: `elute.check` with `precision`, alone."""
    from elute.estimate.inference.certificate import certify as certify_counts

    merges = as_merge_plan(plan)
    counts = log if isinstance(log, Counts) else as_log(log, **columns).counts(progress)
    return certify_counts(counts, merges, progress)


def _certify(verdict: Check, progress: Progress) -> Certificate:
    from elute.estimate.inference.certificate import certify as certify_counts

    if verdict.log.roles.click is None:
        raise EluteError(f"{verdict.log.engine.label} has no clicks, which `precision=True` needs")
    if isinstance(verdict.plan, MergePlan):
        return certify_counts(verdict.counts, verdict.plan, progress)
    return certify_counts(verdict.planned_counts, None, progress)


def _bound(verdict: Check, assumed: Assumptions, progress: Progress) -> Bounds:
    from elute.bounds.bounds import find_bounds

    if verdict.precision is None:
        raise EluteError(f"{verdict.log.engine.label} has no clicks, which `bounds=True` needs")
    return find_bounds(verdict.precision, assumed, progress)


def _identify(verdict: Check, model: str, seed: int) -> GenericIdentifiability:
    from elute.identify.generic.identifiability import judge_cells
    from elute.sessions.identify import SESSION_MODELS, judge_pages

    if model in SESSION_MODELS:
        if verdict.plan is not None:
            raise EluteError(f"a plan moves impressions, which leaves no pages: check '{model}' without `plan=`")
        return judge_pages(verdict.log, model, seed=seed)
    counts = verdict.planned_counts
    named = [describe(factor) for factor in to_rows(counts.factors, range(counts.n_factors))]
    return judge_cells(counts.offsets, counts.factor, named, model, seed=seed)

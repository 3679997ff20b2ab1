"""`elute.check`."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from elute.cells.factors import describe, rows
from elute.checking.check import Check
from elute.checking.check import check as check_log
from elute.errors import EluteError
from elute.estimate.inference.certificate import Certificate, certify
from elute.identify.generic.identifiability import GenericIdentifiability, of_cells
from elute.progress import Progress, silent
from elute.repair.plan import MergePlan
from elute.verbs.plans import PlanSource, as_plan
from elute.verbs.source import LogOptions, LogSource, as_log


def check(
    log: LogSource,
    *,
    plan: PlanSource | None = None,
    explore: bool = False,
    curve: bool = False,
    precision: bool = False,
    model: str | None = None,
    seed: int = 0,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Check:
    """Can relevance be recovered from this log, and for which queries?

    `log`: a path, a table, a folder of counts, counts or a log; `columns` as for `elute.read_log`. `plan`: as if this
    repair plan, or the file of one, had been carried out. `explore`: also for every subset of the bias columns.
    `curve`: also for samples of the log. `precision`: also how precisely propensities are determined, and by what.
    `model`: also for affine (trust bias) or vector:D clicks, not only r·o. `seed`: of what `curve` and `model` draw.
    """
    opened, links = as_log(log, **columns), None if plan is None else as_plan(plan)
    verdict = check_log(opened, plan=links, explore=explore, curve=curve, seed=seed, progress=progress)
    if precision:
        verdict = replace(verdict, certificate=_certify(verdict, progress))
    return verdict if model is None else replace(verdict, generic=_identify(verdict, model, seed))


def _certify(verdict: Check, progress: Progress) -> Certificate:
    if verdict.log.roles.click is None:
        raise EluteError(f"{verdict.log.engine.label} has no clicks, which `precision=True` needs")
    if isinstance(verdict.plan, MergePlan):
        return certify(verdict.counts, verdict.plan, progress)
    return certify(verdict.planned_counts, None, progress)


def _identify(verdict: Check, model: str, seed: int) -> GenericIdentifiability:
    counts = verdict.planned_counts
    named = [describe(factor) for factor in rows(counts.factors, range(counts.n_factors))]
    return of_cells(counts.offsets, counts.factor, named, model, seed=seed)

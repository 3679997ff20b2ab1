"""What verbs take in place of a log, a check, a plan or files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from elute._util.paths import require_names
from elute._util.threads import use_threads
from elute.cells.filters import Filters
from elute.cells.roles import resolve_roles
from elute.checking.check import Check, check
from elute.engines.warehouse.engine import CellsEngine
from elute.engines.warehouse.layout import AboutCells
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog, LogOptions, LogSource, as_log, open_held
from elute.progress import Progress, silent
from elute.repair.plan import MergePlan, ScorePlan, SwapPlan, load
from elute.results.invocation import DEFAULTS


def as_check(
    source: LogSource | Check,
    progress: Progress = silent,
    target_log_se: float | None = None,
    **options: Unpack[LogOptions],
) -> Check:
    """A check, or a log that is checked now; with a `target_log_se`, for how precisely its clicks settle things."""
    if isinstance(source, Check):
        if options:
            raise EluteError("the log was checked already, with its own columns; give these to `elute.check`")
        return source
    return check(as_log(source, **options), target_log_se=target_log_se, progress=progress)


def read_cells(source: LogSource, **given: Unpack[LogOptions]) -> ClickLog:
    """A log by its cells, which the statement of `elute.sql` counted where the log is."""
    options = {**DEFAULTS, **given}
    parts = source if isinstance(source, list | tuple) else [source]
    if not parts or not all(isinstance(part, str | Path) for part in parts):
        raise EluteError("`from_cells=` reads Parquet files; give their paths")
    if options["engine"] != DEFAULTS["engine"]:
        raise EluteError(f"`engine='{options['engine']}'`: the cells are counted already; leave it out")
    if options["threads"] is not None:
        use_threads(options["threads"])
    paths = tuple(map(str, parts))
    require_names(paths)

    def name_roles(columns: list[str]) -> AboutCells:
        named = {name: options[name] for name in ("query", "doc", "item", "bias", "impressions")}
        others = [options[name] for name in ("click", "impressions") if options[name] is not None]
        roles, problems = resolve_roles([*columns, *others], click=options["click"], **named)
        if problems:
            raise EluteError(f"{paths[0]}: {'; '.join(problems)}")
        return AboutCells(paths[0], roles, Filters())

    engine = CellsEngine(list(paths), name_roles, options["exact"], options["memory"], options["spill"])
    try:
        return open_held(engine, source, options, Filters.from_options(options))
    except BaseException:
        engine.close()
        raise


def name_source(source: object) -> object:
    """What the user named, where it may have been opened already."""
    return source.source if isinstance(source, ClickLog) else source.folder if isinstance(source, Fit) else source


def as_paths(given: str | Path | Sequence[str | Path] | None) -> tuple[str, ...]:
    """One path, several or none, as a tuple."""
    if given is None:
        return ()
    return (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))


PlanSource = MergePlan | SwapPlan | ScorePlan | str | Path
"""A plan, or the file that holds one."""


def as_plan(source: PlanSource) -> MergePlan | SwapPlan | ScorePlan:
    """The plan."""
    return load(source) if isinstance(source, str | Path) else source


def as_fit_plan(source: PlanSource | None) -> MergePlan | ScorePlan | None:
    """A plan that changes a fit."""
    plan = None if source is None else as_plan(source)
    if isinstance(plan, SwapPlan):
        named = f"{source} is" if isinstance(source, str | Path) else "this is"
        raise EluteError(f"{named} a swap plan: show its swaps to users, then fit the log that results")
    return plan


def as_merge_plan(source: PlanSource | None) -> MergePlan | None:
    """A plan that merges."""
    plan = as_fit_plan(source)
    if isinstance(plan, ScorePlan):
        raise EluteError("a score plan is carried out by `elute.fit` alone; give a merge plan")
    return plan

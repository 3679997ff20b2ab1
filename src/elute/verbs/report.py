"""`elute.report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from elute._util.paths import refuse_harm
from elute.auditing.audit import Audit
from elute.fits.fit import Fit
from elute.log import LogOptions, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.reporting.build import build
from elute.reporting.commands import Files
from elute.reporting.page import Report
from elute.reporting.sections.verdicts import read_audit
from elute.results.base import Result
from elute.valuing.value import Value
from elute.verbs.audit import FitSource
from elute.verbs.source import PlanSource, as_plan, name_source


@takes()
def report(
    log: LogSource,
    out: str | Path | None = None,
    *,
    plan: PlanSource | None = None,
    fits: FitSource | Sequence[FitSource] = (),
    audit: Audit | Result | str | Path | None = None,
    value: Value | str | Path | None = None,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Report:
    """One page on a log, for people: the verdict, the graph, propensities, relevance against clicks.

    The page is a single HTML file that needs no network, written to `out`, or later by `save`. The log is checked anew;
    `plan`, `fits`, `audit` and `value` are results of the other verbs, or their files. `columns`: as for
    `elute.read_log`.
    """
    refuse_harm(out, [name_source(log), plan, fits, audit])
    given = [fits] if isinstance(fits, Fit | str | Path) else list(fits)
    read = [fit if isinstance(fit, Fit) else Fit.load(fit) for fit in given]
    audited = None if audit is None else audit.to_dict() if isinstance(audit, Result) else read_audit(audit)
    files = Files(
        plan=str(plan) if isinstance(plan, str | Path) else None if plan is None else "plan.json",
        fits=tuple(fit.name if fit.folder is None else str(fit.folder) for fit in read),
        audit=str(audit) if isinstance(audit, str | Path) else None if audit is None else "audit.json",
        value=str(value) if isinstance(value, str | Path) else None if value is None else "value",
        out=None if out is None else str(out),
    )
    valued = Value.load(value) if isinstance(value, str | Path) else value
    page = build(
        as_log(log, **columns),
        plan=None if plan is None else as_plan(plan),
        fits=read,
        audit=audited,
        value=None if valued is None else valued.to_dict(),
        files=files,
        progress=progress,
    )
    if out is not None:
        page.save(out)
    return page

"""A report from a log and the files that other verbs wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from elute.bounds.assumptions import Assumptions
from elute.bounds.bounds import find_bounds
from elute.checking.check import check as run_check
from elute.estimate.inference.certificate import Certificate, certify
from elute.fits.fit import Fit
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.repair.plan import AnyPlan
from elute.reporting.commands import Files, list_commands, list_missing
from elute.reporting.page import Report

CERTIFIED = 2_000
"""Factors up to which weak links are shown by their error, which takes a fit; beyond, by the items behind them."""

_EXPLORED = 6
"""Bias columns up to which every subset is tried."""


def build(
    log: ClickLog,
    *,
    plan: AnyPlan | None = None,
    fits: Sequence[Fit] = (),
    audit: Mapping[str, Any] | None = None,
    value: Mapping[str, Any] | None = None,
    files: Files,
    progress: Progress = silent,
) -> Report:
    """Check the log; it must stay open until the page is written. `files`: what the page's commands name."""
    for fit in fits:
        fit.require_columns(log.roles)
    several = 1 < len(log.roles.bias) <= _EXPLORED
    check = run_check(log, explore=several, structures=False, progress=progress)
    if check.precision is not None and not check.reaches("estimable"):
        check = replace(check, bounds=find_bounds(check.precision, Assumptions(), progress))
    certificate: Certificate | None = None
    if log.roles.click is not None and log.survey.clicks.sum() > 0 and log.survey.factors.num_rows <= CERTIFIED:
        certificate = certify(check.counts, None, progress)
    progress("writing the page", 0, 0)
    report = Report(check, certificate, plan, tuple(fits), audit, out=files.out, value=value)
    call = log.invocation
    return replace(report, commands=list_commands(call, report, files), missing=list_missing(call, report, files))

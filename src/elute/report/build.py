"""A report from a log and the files that other verbs wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elute.estimate.certificate import Certificate, certify
from elute.identify.check import check as run_check
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.repair.plan import MergePlan, SwapPlan
from elute.report.fits import read_shown
from elute.report.page import Report
from elute.report.verdicts import read_audit

CERTIFIED = 2_000
"""Factors up to which weak links are shown by their error, which takes a fit; beyond, by the items behind them."""

_EXPLORED = 6
"""Bias columns up to which every subset is tried."""


def build(
    log: ClickLog,
    *,
    plan: MergePlan | SwapPlan | None = None,
    fits: Sequence[str | Path] = (),
    audit: str | Path | None = None,
    progress: Progress = silent,
) -> Report:
    """Check the log and read the files; the log must stay open until the page is written."""
    shown = tuple(read_shown(folder, log.roles) for folder in fits)
    audited = None if audit is None else read_audit(audit)
    check = run_check(log, explore=1 < len(log.roles.bias) <= _EXPLORED, progress=progress)
    certificate: Certificate | None = None
    if log.roles.click is not None and log.survey.clicks.sum() > 0 and log.survey.factors.num_rows <= CERTIFIED:
        certificate = certify(check.counts, None, progress)
    progress("writing the page", 0, 0)
    return Report(check, certificate, plan, shown, audited)

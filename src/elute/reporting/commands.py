"""The commands that a report names: those that made it, and those that would add to it."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from elute.repair.plan import MergePlan
from elute.reporting.page import Report
from elute.results.invocation import Invocation

Lines = list[tuple[str, str]]


class Files(NamedTuple):
    """What the report was made from, and where it goes."""

    plan: str | None
    fits: tuple[str, ...]
    audit: str | None
    out: str | None


def list_commands(call: Invocation, page: Report, files: Files) -> Lines:
    """What leads from the log to the page, as far as its files tell."""
    lines = [(call.command("check"), "the verdict")]
    merged: list[str] = []
    if page.plan is not None and files.plan is not None:
        lines.append((call.command("repair", "--method", page.plan.method, "--out", files.plan), "the repair plan"))
        merged = ["--plan", files.plan] if isinstance(page.plan, MergePlan) and not page.check.recoverable else []
    for folder, fit in zip(files.fits, page.fits, strict=True):
        lines.append((call.command("fit", "--model", fit.model, *merged, "--out", folder), f"the fit {fit.name}"))
    if page.audit is not None and files.audit is not None:
        fits = files.fits if "models" in page.audit else ()
        command = _audit_command(call, fits, "assumptions" in page.audit)
        labels = "; with the --labels it had" if page.audit.get("judged_items") else ""
        lines.append((f"{command} > {shlex.quote(files.audit)}", f"the audit{labels}"))
    given = ["--plan", files.plan] if files.plan is not None else []
    given += [word for folder in files.fits for word in ("--fit", folder)]
    given += ["--audit", files.audit] if files.audit is not None else []
    return [*lines, (call.command("report", *given, "--out", files.out or "report.html"), "this page")]


def list_missing(call: Invocation, page: Report, files: Files) -> Lines:
    """What would fill the sections that the page lacks."""
    lines: Lines = []
    if page.plan is None and not page.check.recoverable:
        lines.append((call.command("repair", "--method", "merge", "--out", "plan.json"), "a repair plan"))
    if page.check.log.roles.click is not None:
        if not page.fits:
            plan = [] if page.check.recoverable else ["--plan", files.plan or "plan.json"]
            lines.append((call.command("fit", *plan, "--out", "fit"), "propensities and relevance"))
        if page.audit is None:
            fits = files.fits or ("fit",)
            lines.append((f"{_audit_command(call, fits, True)} > audit.json", "verdicts on fits and assumptions"))
    return lines


def _audit_command(call: Invocation, fits: tuple[str, ...], assumptions: bool) -> str:
    words = [word for folder in fits for word in ("--fit", folder)]
    words += [word for source in call.sources for word in ("--log", source)]
    tests = ["--assumptions"] if assumptions else []
    return Invocation((), call.options).command("audit", *words, *tests, "--json")

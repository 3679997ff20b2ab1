"""The commands that a report names: those that made it, and those that would add to it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from elute.repair.plan import MergePlan, ScorePlan
from elute.reporting.page import Report
from elute.reporting.ways import find_repair, suggest_judging
from elute.results.invocation import Invocation, spell_options

Lines = list[tuple[str, str]]


class Files(NamedTuple):
    """What the report was made from, and where it goes."""

    plan: str | None
    fits: tuple[str, ...]
    audit: str | None
    value: str | None
    out: str | None


def list_commands(call: Invocation, page: Report, files: Files) -> Lines:
    """What leads from the log to the page, with all that each step was given."""
    lines = [(call.command("check"), "the verdict")]
    plan, merged = page.plan, []
    if plan is not None and files.plan is not None:
        words = "--method", plan.method, *spell_options(plan.provenance.options), "--out", files.plan
        lines.append((call.with_filters(plan.provenance.filters).command("repair", *words), "the repair plan"))
        lines.append((call.command("check", "--plan", files.plan), "the verdict under the plan"))
        changes = isinstance(plan, ScorePlan) or (isinstance(plan, MergePlan) and not page.check.recoverable)
        merged = ["--plan", files.plan] if changes else []
    for folder, fit in zip(files.fits, page.fits, strict=True):
        own = fit.provenance.options
        given = [*([] if "plan" in own else merged), *spell_options(own)]
        made = call.with_filters(fit.provenance.filters)
        lines.append((made.command("fit", "--model", fit.model, *given, "--out", folder), f"the fit {fit.name}"))
    if page.audit is not None and files.audit is not None:
        fits = files.fits if "models" in page.audit else ()
        command = _audit_command(call, fits, "assumptions" in page.audit, page.audit.get("options", {}))
        lines.append((f"{command} > {shlex.quote(files.audit)}", "the audit"))
    if page.value is not None and files.value is not None:
        options = spell_options(page.value.get("options", {}))
        given = ["--fit", (files.fits or ("fit",))[0], *options, "--out", files.value]
        lines.append((call.command("value", *given), "what rankings would earn"))
    given = ["--plan", files.plan] if files.plan is not None else []
    given += [word for folder in files.fits for word in ("--fit", folder)]
    given += ["--audit", files.audit] if files.audit is not None else []
    given += ["--value", files.value] if files.value is not None else []
    return [*lines, (call.command("report", *given, "--out", files.out or "report.html"), "this page")]


def list_missing(call: Invocation, page: Report, files: Files) -> Lines:
    """What would fill the sections that the page lacks, in the order of the work. What keeps a log apart, or its clicks
    from being enough, comes first: nothing after it would stand."""
    check, lines = page.check, []
    usable = check.reaches("estimable")
    if check.filter is not None:
        filtered = call.with_option(check.filter.option, check.filter.value)
        lines.append((filtered.command("check"), "without the few impressions that keep it apart"))
    elif page.plan is None and not check.recoverable:
        lines.append(find_repair(check, call))
    elif check.recoverable and not usable and check.log.roles.click is not None:
        lines.append((call.command("check"), "what is missing for its propensities to be estimated"))
    if check.log.roles.click is None or not (usable or page.plan is not None):
        return lines
    fits = files.fits or ("fit",)
    if not page.fits:
        plan = ["--plan", files.plan] if not check.recoverable and files.plan is not None else []
        lines.append((call.command("fit", *plan, "--out", "fit"), "propensities and relevance"))
    if page.audit is None:
        lines.append((f"{_audit_command(call, fits, True, {})} > audit.json", "verdicts on fits and assumptions"))
    return [*lines, suggest_judging(call, check.log.roles, fits[0])]


def _audit_command(call: Invocation, fits: tuple[str, ...], assumptions: bool, options: Mapping[str, Any]) -> str:
    words = [word for folder in fits for word in ("--fit", folder)]
    words += [word for source in call.sources for word in ("--log", source)]
    words += [*(["--assumptions"] if assumptions else []), *spell_options(options)]
    return Invocation((), call.options).command("audit", *words, "--json")

"""Ways out of a log that falls apart: the command to try, for the pages of a check and of a report."""

from __future__ import annotations

import shlex

from elute.cells.factors import is_position
from elute.cells.roles import DEFAULT_DOC, DEFAULT_QUERY, Roles
from elute.checking.check import Check
from elute.checking.structures import propose
from elute.engines.counts_folder.engine import CountsEngine
from elute.fits.fit import Fit
from elute.fits.folder import is_fit
from elute.results.invocation import Invocation


def find_repair(check: Check, call: Invocation) -> tuple[str, str]:
    """What may bring the components together, and why; never by leaving out the position."""
    positions = {column for column in check.log.roles.bias if is_position(check.log.survey.factors, column)}
    proposed = propose([one for one in check.structures or () if positions <= set(one.columns)])
    if proposed is not None and proposed != str(check.log.roles.formula or ",".join(check.log.roles.bias)):
        chosen = _name_log(check, call).with_option("bias", proposed)
        return chosen.command("check"), "the richest structure that this log bears and does not contradict"
    repaired = [one for one in check.subsets or () if one.recoverable and positions <= set(one.bias)]
    if repaired:
        chosen = _name_log(check, call).with_option("bias", ",".join(repaired[-1].bias))
        return chosen.command("check"), "with this choice the log is linked"
    if check.subsets is None and len(check.log.roles.bias) > 1:
        return call.command("check", "--explore"), "which bias column breaks it"
    if check.coarser and check.coarser[0].components == 1:
        return call.with_option("item", ",".join(check.coarser[0].item)).command("check"), "with coarser items"
    if check.log.roles.click is None:  # a swap plan rests on clicks
        return _suggest_merging(call)
    return suggest_plan(call, check.components, len(check.structure.root))


def _name_log(check: Check, call: Invocation) -> Invocation:
    """What other columns can be read from: of counts, whose columns are chosen for good, the log that was counted."""
    log = check.log
    if not isinstance(log.engine, CountsEngine):
        return call
    asked = {name: getattr(log.roles, name) for name in ("query", "click", "impressions", "session")}
    options = {**call.options, **{name: value for name, value in asked.items() if value is not None}}
    options |= {"bias": ",".join(log.roles.bias), "item": None}
    if log.roles.item != (log.roles.query, DEFAULT_DOC):
        options["item"] = ",".join(log.roles.item)
    files = tuple(str(state["file"]) for state in log.engine.state if "file" in state)
    in_parts = log.engine.label == str(log.source)
    if len(files) > 1 or (files and in_parts):
        options |= {"last": None, "drop": None}
    else:
        files = (log.engine.label,)
    return Invocation(files, options).with_filters(log.provenance().filters)


def suggest_plan(call: Invocation, components: int, factors: int) -> tuple[str, str]:
    """Merges, unless they would leave one propensity for all."""
    if components == factors:
        words = "--method", "swap", "--out", "plan.json"
        return call.command("repair", *words), "merging would leave one propensity for all: show items elsewhere"
    return _suggest_merging(call)


def _suggest_merging(call: Invocation) -> tuple[str, str]:
    return call.command("repair", "--method", "merge", "--out", "plan.json"), "the cheapest offline repair"


def suggest_judging(call: Invocation, roles: Roles, folder: str) -> tuple[str, str]:
    """What comes after a fit: judgments where it has some, else a page to read."""
    known = Fit.load(folder).summary.get("precision") if is_fit(folder) else None
    if roles.query is None or (known is not None and known["items_known_share"] == 0):
        why = "no item has a known place in a query: judge would withhold all" if roles.query else "all on one page"
        return call.command("report", "--fit", folder, "--out", "report.html"), why
    doc = next((column for column in roles.item if column != roles.query), str(call.options.get("doc", DEFAULT_DOC)))
    words = ["elute", "judge", folder, "--format", "quepid", "--out", "ratings.csv"]
    words += ["--query", roles.query] if roles.query != DEFAULT_QUERY else []
    words += ["--doc", doc] if doc != DEFAULT_DOC else []
    if set(roles.item) != {roles.query, doc}:
        words += [word for source in call.sources for word in ("--log", source)]
    return shlex.join(words), "judgments that can be stood behind; or another format"

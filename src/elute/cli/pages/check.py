"""The page `elute check` prints: the verdict first, then the evidence, then what to run next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.cells.filters import describe_filters
from elute.checking.check import Check
from elute.cli.pages import growth, known, structures
from elute.cli.pages.bounds import show_bounds
from elute.cli.text import format_count, format_share, list_rows, to_one_line
from elute.reporting.ways import find_repair
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.estimate.inference.certificate import Certificate

_ISOLATED = 5
_COMPONENTS = 8


class Given(NamedTuple):
    """What the command was given beside the log: the file of a plan, and words that a further check repeats."""

    plan: str | None = None
    words: tuple[str, ...] = ()


def show(console: Console, check: Check, call: Invocation, given: Given) -> None:
    """Print the page."""
    certificate = check.certificate
    precision: list[RenderableType] = [] if certificate is None else [_show_precision(certificate), Text()]
    console.print(Padding(Group(*_list_sections(check), *precision), (1, 2, 0, 2)))
    console.print(_suggest_next(check, call, given), soft_wrap=True)


def _list_sections(check: Check) -> list[RenderableType]:
    sections: list[RenderableType] = [_write_verdict(check), Text(), _tabulate_evidence(check)]
    if not check.recoverable:
        sections += [Text(), _tabulate_components(check)]
    if check.isolated:
        sections += [Text(), _tabulate_isolated(check)]
    if check.subsets is not None:
        sections += [Text(), _tabulate_subsets(check)]
    if check.structures is not None:
        sections += [Text(), *structures.show_structures(check.structures)]
    if check.effects is not None:
        sections += [Text(), structures.tabulate_effects(check.effects)]
    if check.curve is not None:
        sections += [Text(), growth.tabulate_curve(check.curve)]
    if check.stages is not None:
        sections += [Text(), growth.tabulate_stages(check.stages, int(check.log.survey.impressions.sum()))]
    if check.bounds is not None:
        sections += [Text(), *show_bounds(check.bounds.to_dict())]
    sections += known.show_missing(check)
    if check.warnings:
        sections += [Text(), _tabulate_warnings(check)]
    return [*sections, Text()]


def _write_verdict(check: Check) -> Text:
    return Text(f"{check.look.sign} {check.sentence}", style=_STYLES[check.look.tone])


_STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red", "calm": "bold"}


def _tabulate_evidence(check: Check) -> Table:
    fields = check.to_dict()
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right")
    for names in (("impressions", "clicks"), ("items", "factors", "cells"), ("queries",)):
        grid.add_row(
            format_count(fields[names[0]]),
            ", ".join([names[0], *(f"{format_count(fields[n])} {n}" for n in names[1:])]),
        )
    for name, words in _SHARES.items():
        if fields[name] is not None:
            grid.add_row(format_share(fields[name]), words)
    for value, words in known.list_knowledge(check):
        grid.add_row(value, words)
    for said in describe_filters(fields):
        grid.add_row("read", Text(to_one_line(said, 400)))
    return grid


_SHARES = {
    "rankable_share": "of the queries are linked: their items lie in one component",
    "comparable_pairs_share": "of the pairs of items within a query are linked",
    "impressions_in_largest_share": "of the impressions lie in the largest component",
}


def _make_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMERIC else "left", header_style="dim", overflow="fold")
    return table


_NUMERIC = (
    "#",
    "factors",
    "items",
    "impressions",
    "clicks",
    "components",
    "rankable",
    "share",
    "recoverable",
    "estimate",
    "paper's estimate",
)


def _tabulate_components(check: Check) -> Table:
    shown = check.component_details[:_COMPONENTS]
    title = f"Components ({format_count(check.components)})"
    table = _make_table(title, "#", "factors", "items", "impressions", "clicks", "its factors", "example items")
    for number, part in enumerate(shown, start=1):
        figures = (part.factors, part.items, part.impressions, part.clicks)
        words = (list_rows(part.example_factors, 3), list_rows(part.example_items, 1))
        table.add_row(str(number), *(format_count(figure) for figure in figures), *(Text(word) for word in words))
    if check.components > len(shown):
        table.add_row("…", *[""] * 4, f"{format_count(check.components - len(shown))} more")
    return table


def _tabulate_isolated(check: Check) -> Table:
    table = _make_table(f"Isolated factors ({format_count(check.isolated_factors)})", "why")
    for alone in check.isolated[:_ISOLATED]:
        table.add_row(Text(to_one_line(alone.reason, 200)))
    if check.isolated_factors > _ISOLATED:
        table.add_row(Text(f"… {format_count(check.isolated_factors - _ISOLATED)} more"))
    table.show_header = False
    return table


def _tabulate_subsets(check: Check) -> Table:
    table = _make_table("Which bias column breaks it", "bias columns", "factors", "components", "rankable", "")
    for subset in check.subsets or ():
        mark = Text("linked") if subset.recoverable else Text("apart", style="red")
        figures = (format_count(subset.factors), format_count(subset.components), format_share(subset.rankable_share))
        table.add_row(Text(", ".join(subset.bias)), *figures, mark)
    return table


def _show_precision(certificate: Certificate) -> Group:
    """The spread of the errors, and the links that make the largest."""
    compared = certificate.log_se[certificate.log_se > 0]  # what others are measured by has none
    size = f"{len(compared):,} of {len(certificate.log_se):,} factors"
    if not len(compared):
        return Group(Text("Standard error of log propensity: none, as no two factors can be compared."))
    at = zip(_QUARTILES, np.quantile(compared, _AT), strict=True)
    spread = ", ".join(f"{name} {value:.3f}" for name, value in at)
    parts: list[RenderableType] = [Text(f"Standard error of log propensity, independent clicks ({size}): {spread}")]
    if certificate.reason:
        parts.append(Text(f"Not estimable as a whole: {to_one_line(certificate.reason, 400)}", style="red"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("weakest links", "", "items", "standard error of their ratio"):
        table.add_column(head, justify="left" if head in ("weakest links", "") else "right")
    for link in certificate.links[:_COMPONENTS]:
        ends = (Text(to_one_line(describe(factor))) for factor in (link.a, link.b))
        table.add_row(*ends, format_count(link.items), f"{link.resistance**0.5:.3f}")
    return Group(*parts, Text(), table)


_AT, _QUARTILES = (0.5, 0.9, 1.0), ("median", "90%", "largest")


def _tabulate_warnings(check: Check) -> Table:
    table = _make_table("Health", "code", "what")
    table.show_header = False
    for warning in check.warnings:
        table.add_row(Text(warning.code, style="yellow"), Text(to_one_line(warning.message, 240)))
    table.caption, table.caption_justify = "what a code means, and what to do: elute explain CODE", "left"
    return table


def _suggest_next(check: Check, call: Invocation, given: Given) -> Text:
    command, why = _find_next(check, call, given)
    return Text.assemble(("  Next: ", "bold"), command, (f"   # {why}", "dim"))


def _find_next(check: Check, call: Invocation, given: Given) -> tuple[str, str]:
    """The command that leads on from this rung, and why."""
    if check.plan is not None and check.plan.method == "swap":
        return call.command("check", *given.words), "once these swaps have been shown to users and logged"
    if check.log.roles.click is None and check.recoverable:
        words = () if given.plan is None else ("--plan", given.plan)
        report = call.command("report", *words, "--out", "report.html")
        return report, "all on one page; clicks say more: name their column with --click"
    if check.rung in ("loose", "known"):
        words = () if given.plan is None else ("--plan", given.plan)
        return call.command("fit", *words, "--out", "fit"), _describe_fit(check)
    if check.filter is not None:
        filtered = call.with_option(check.filter.option, check.filter.value)
        return filtered.command("check", *given.words), "without the few impressions that keep it apart"
    if check.rung == "linked" and not check.log.survey.clicks.any():
        return call.command("check", *given.words), "once something has been clicked"
    if check.rung == "linked":
        prior = "--prior", "smooth", "--allow-unidentified"
        return call.command(
            "fit", *prior, "--out", "fit"
        ), "neighbouring factors taken as alike, where clicks say nothing"
    return find_repair(check, call)


def _describe_fit(check: Check) -> str:
    if check.caution or (check.precision is not None and len(check.precision.log_se) == 1):
        return "click rates: there is nothing to debias"
    return "propensities and relevance" + ("; some error bars will be wide" if check.rung == "loose" else "")

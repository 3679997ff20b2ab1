"""The page `elute check` prints: the verdict first, then the evidence, then what to run next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.checking.check import Check
from elute.cli.text import format_count, format_share, list_rows, to_one_line
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.estimate.inference.certificate import Certificate

_ISOLATED = 5
_COMPONENTS = 8


def show(console: Console, check: Check, call: Invocation, certificate: Certificate | None = None) -> None:
    """Print the page."""
    precision: list[RenderableType] = [] if certificate is None else [_show_precision(certificate), Text()]
    console.print(Padding(Group(*_list_sections(check), *precision), (1, 2, 0, 2)))
    console.print(_suggest_next(check, call), soft_wrap=True)


def _list_sections(check: Check) -> list[RenderableType]:
    sections: list[RenderableType] = [_write_verdict(check), Text(), _tabulate_evidence(check)]
    if not check.recoverable:
        sections += [Text(), _tabulate_components(check)]
    if check.isolated:
        sections += [Text(), _tabulate_isolated(check)]
    if check.subsets is not None:
        sections += [Text(), _tabulate_subsets(check)]
    if check.curve is not None:
        sections += [Text(), _tabulate_curve(check)]
    if check.warnings:
        sections += [Text(), _tabulate_warnings(check)]
    return [*sections, Text()]


def _write_verdict(check: Check) -> Text:
    mark, style = ("✓ ", "bold green") if check.recoverable else ("✗ ", "bold red")
    if check.recoverable and check.caution:
        mark, style = "! ", "bold yellow"
    return Text(mark + check.sentence, style=style)


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
    return grid


_SHARES = {
    "rankable_share": "of the queries can be ranked",
    "comparable_pairs_share": "of the pairs of items within a query can be compared",
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
        mark = Text("✓", style="green") if subset.recoverable else Text("✗", style="red")
        figures = (format_count(subset.factors), format_count(subset.components), format_share(subset.rankable_share))
        table.add_row(Text(", ".join(subset.bias)), *figures, mark)
    return table


def _tabulate_curve(check: Check) -> Table:
    heads = ("share", "impressions", "recoverable", "estimate", "paper's estimate", "components", "factors")
    table = _make_table("How much log is enough", *heads)
    for point in check.curve or ():
        table.add_row(
            f"{point.share:.0%}",
            format_count(round(point.impressions)),
            format_share(point.probability),
            format_share(point.estimate),
            format_share(point.estimate_paper),
            f"{point.components:,.1f}",
            f"{point.factors:,.1f}",
        )
    samples = max((point.samples for point in check.curve or ()), default=0)
    table.caption = (
        f"recoverable: share of {samples} random samples with all factors, in one component; estimate: if items met "
        "factors at random; paper's: its Example 2; components and factors: means over the samples"
    )
    table.caption_justify = "left"
    return table


def _show_precision(certificate: Certificate) -> Group:
    """The spread of the errors, and the links that make the largest."""
    known = certificate.log_se[~np.isnan(certificate.log_se)]
    size = f"{len(known):,} of {len(certificate.log_se):,} factors"
    spread = ", ".join(f"{name} {value:.3f}" for name, value in zip(_QUARTILES, np.quantile(known, _AT), strict=True))
    parts: list[RenderableType] = [Text(f"Standard error of log propensity ({size}): {spread}")]
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


def _suggest_next(check: Check, call: Invocation) -> Text:
    repaired = [subset for subset in check.subsets or () if subset.recoverable]
    if check.recoverable and check.plan is not None:
        command, why = call.command("check", "--json"), "all figures, without the plan"
    elif not check.recoverable and repaired:
        columns = ",".join(repaired[-1].bias)
        command, why = call.with_option("bias", columns).command("check"), "with this choice the log is recoverable"
    elif not check.recoverable and check.subsets is None and len(check.log.roles.bias) > 1:
        command, why = call.command("check", "--explore"), "which bias column breaks it"
    elif not check.recoverable:
        command, why = call.command("repair", "--method", "merge", "--out", "plan.json"), "the cheapest offline repair"
    elif check.curve is None:
        command, why = call.command("check", "--curve"), "how much of this log would be enough"
    else:
        command, why = call.command("check", "--json"), "all figures, for a program"
    return Text.assemble(("  Next: ", "bold"), command, (f"   # {why}", "dim"))

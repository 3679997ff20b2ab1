"""What the page of `elute check` says of how much is known, and of what is missing."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.checking.check import Check
from elute.cli.text import format_count, format_share, to_one_line
from elute.known.dependence import Dependence

_SHOWN = 6


def list_knowledge(check: Check) -> list[tuple[str, str]]:
    """Figures, each with its words."""
    found = check.precision
    if found is None:
        return []
    known, shares = found.to_dict(), found.shares
    rows = [(format_share(known["impressions_known_share"]), "of the impressions have a known propensity")]
    if found.median_log_se is not None:
        largest = "none known" if found.largest_log_se is None else f"{found.largest_log_se:.2g}"
        rows.append((f"{found.median_log_se:.2g}", f"standard error of log propensities, median; largest {largest}"))
    rows.append((format_share(shares.items_known), "of the items have a known place"))
    if shares.queries_ordered is not None and shares.pairs_right is not None:
        right = f"{shares.pairs_right:.0%} expected right"
        rows.append((format_share(shares.queries_ordered), f"of the pairs in a query are certain at 95%; {right}"))
    if found.dependence is not None:
        rows.append(_describe_dependence(found.dependence))
    return rows


def _describe_dependence(found: Dependence) -> tuple[str, str]:
    """By how much errors grow as clicks depend on each other, which the figures above take in."""
    times, clusters = found.typical**0.5, found.clusters
    number = f"{format_count(clusters)} cluster{'' if clusters == 1 else 's'} by {to_one_line(found.by)}"
    if not found.tells:
        return "–", f"clicks may depend on each other: {number} cannot tell"
    if times < 1.005:
        return "1 ×", f"no sign that clicks depend on each other ({number})"
    return f"{times:.2g} ×", f"the errors of independent clicks, as clicks depend on each other ({number})"


def show_missing(check: Check) -> list[RenderableType]:
    """What is missing in impressions, and filters or items that would help."""
    fields = check.to_dict()
    out: list[RenderableType] = []
    missing = fields["missing"]
    if missing is not None and (missing["factors"] or missing["links"]):
        out += [Text(), _tabulate_missing(fields, missing)]
    lines = [_describe_suggestion(one) for one in fields["suggestions"]]
    if lines:
        out += [Text(), Group(*(Text(line) for line in lines))]
    if fields["precision"] is not None and fields["precision"]["notes"]:
        out += [Text(), Text(f"Approximate: {'; '.join(fields['precision']['notes'])}.", style="dim")]
    return out


def _tabulate_missing(fields: dict[str, Any], missing: dict[str, Any]) -> Table:
    target, clicks = fields["precision"]["target_log_se"], fields["precision"]["clicks_needed"]
    title = f"What is missing for a standard error of {target:g}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for head in ("what", "impressions", "clicks", "standard error", "further impressions"):
        table.add_column(head, justify="left" if head == "what" else "right", header_style="dim", overflow="fold")
    for link in missing["links"][:_SHOWN]:
        what = f"an item shown at both {describe(link['a'])} and {describe(link['b'])}"
        table.add_row(
            Text(to_one_line(what, 120)), "", "", "no estimate", f"{format_count(link['impressions_needed'])} each"
        )
    for one in missing["factors"][:_SHOWN]:
        error = "no estimate" if one["log_se"] is None else f"{one['log_se']:.3g}"
        figures = format_count(one["impressions"]), format_count(one["clicks"]), error
        table.add_row(Text(to_one_line(describe(one["factor"]))), *figures, format_count(one["impressions_needed"]))
    if missing["total"] > _SHOWN:
        table.add_row(f"… {format_count(missing['total'] - _SHOWN)} more")
    if clicks:
        table.caption = f"together about {format_count(clicks)} clicks"
        table.caption_justify = "left"
    return table


def _describe_suggestion(one: dict[str, Any]) -> str:
    """A filter, or other items, in words."""
    if one["option"] == "item":
        if one["rankable_share"] is None:
            return f"Coarser items may link more (not tried, as the log is large): --item {one['value']}"
        parts = "one component" if one["components"] == 1 else f"{format_count(one['components'])} components"
        return (
            f"With coarser items {format_share(one['rankable_share'])} of the queries can be ranked ({parts}): "
            f"--item {one['value']}, if relevance is the same there"
        )
    n, share = format_count(one["impressions"]), format_share(one["share"])
    named = ", ".join(to_one_line(describe(row)) for row in one["factors"][:3])
    more = f" and {len(one['factors']) - 3} more" if len(one["factors"]) > 3 else ""
    flag = f"--{one['option'].replace('_', '-')} {one['value']}"
    return f"{n} impressions ({share}) at {named}{more} keep it apart: {flag}"

"""What a merge plan does to relevance, on the page of `elute repair`."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute._util.text import format_share
from elute.repair.distortion.fields import Alternative, Consequence, find_standard
from elute.repair.plan import MergePlan


def show_consequence(console: Console, plan: MergePlan, consequence: Consequence) -> None:
    """In a sentence and a table; then what given propensities imply, and the other tree where there is one."""
    _print(console, Text(consequence.sentence))
    _print(console, _tabulate_distortion(consequence))
    if consequence.distortion_known is not None:
        _print(console, Text(" ".join((consequence.distortion_known.sentence, plan.bound_sentence)).strip()))
    if len(consequence.alternatives) > 1:
        _print(console, Text(consequence.comparison))
        _print(console, _tabulate_alternatives(consequence.alternatives))


def _print(console: Console, what: Text | Table) -> None:
    console.print(Padding(what, (0, 2, 1, 2)))


def _make_table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _tabulate_distortion(consequence: Consequence) -> Table:
    shares = any(row.queries_safe_share is not None for row in consequence.distortion)
    table = _make_table("pairs differ by", "ratios off by up to", *(["queries in order"] if shares else []))
    for row in consequence.distortion:
        share = [format_share(row.queries_safe_share)] if shares else []
        table.add_row(f"{row.delta:g}", "–" if row.largest is None else f"{row.largest:.3g}", *share)
    return table


def _qualify(one: Alternative) -> str:
    if one.exact:
        return ""
    return " (about)" if one.gap is None else f" (about: its distance is at most {one.gap:.0%} above the least)"


def _tabulate_alternatives(alternatives: tuple[Alternative, ...]) -> Table:
    table = _make_table("tree of", "cost", "longest path", "its distance", "ratios off by up to", "queries in order")
    for one in alternatives:
        at = find_standard(one.distortion)
        table.add_row(
            f"{one.name}{', this plan' if one.chosen else ''}{_qualify(one)}",
            f"{one.cost:.4g}",
            f"{one.longest_path:,}",
            f"{one.longest_distance:.4g}",
            "–" if at.largest is None else f"{at.largest:.3g}",
            format_share(at.queries_safe_share),
        )
    return table

"""The page `elute repair` prints: what the plan does, step by step, and how to try it."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.cli.pages.merging import show_consequence
from elute.cli.text import format_count, to_one_line
from elute.repair.plan import MergePlan, SwapPlan
from elute.results.invocation import Invocation

_SHOWN = 12
_MARKS = {"good": ("✓", "bold green"), "warn": ("!", "bold yellow"), "bad": ("✗", "bold red"), "calm": ("·", "bold")}


def show(console: Console, plan: MergePlan | SwapPlan, call: Invocation, out: str | None) -> None:
    """Print the page."""
    console.print(Padding(_write_sentence(plan), (1, 2)))
    table = _tabulate_pairs(plan) if isinstance(plan, MergePlan) else _tabulate_swaps(plan)
    if table.row_count:
        console.print(Padding(table, (0, 2, 1, 2)))
    if isinstance(plan, SwapPlan):
        for lines in (_list_apart(plan), _describe_precision(plan)):
            if lines:
                console.print(Padding(Text("\n".join(lines)), (0, 2, 1, 2)))
    if isinstance(plan, MergePlan) and plan.pairs and plan.consequence is not None:
        show_consequence(console, plan, plan.consequence)
    console.print(_suggest_next(plan, call, out), soft_wrap=True)


def _write_sentence(plan: MergePlan | SwapPlan) -> Text:
    card = plan.card()
    mark, style = _MARKS[card.tone]
    return Text(
        f"{mark} {card.word}: {card.sentence}" if card.tone == "warn" else f"{mark} {card.sentence}", style=style
    )


def _make_table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in ("cost", "impressions", "expected CTR") else "left")
    return table


def _tabulate_pairs(plan: MergePlan) -> Table:
    table = _make_table("merge", "with", "cost")
    for pair in plan.pairs[-_SHOWN:][::-1]:
        table.add_row(
            Text(to_one_line(describe(pair.a), 60)), Text(to_one_line(describe(pair.b), 60)), f"{pair.cost:.4g}"
        )
    if len(plan.pairs) > _SHOWN:
        table.add_row(f"… {format_count(len(plan.pairs) - _SHOWN)} cheaper pairs", "", "")
    return table


def _tabulate_swaps(plan: SwapPlan) -> Table:
    table = _make_table("show item", "known from", "under", "impressions", "expected CTR", "cost")
    for swap in plan.swaps[:_SHOWN]:
        wanted = swap.impressions_planned or swap.impressions_needed
        words = ("·".join(map(str, swap.item.values())), describe(swap.source), describe(swap.target))
        texts = (Text(to_one_line(word, 40)) for word in words)
        table.add_row(*texts, format_count(wanted), f"{swap.click_probability:.1%}", f"{swap.cost:.4g}")
    if len(plan.swaps) > _SHOWN:
        table.add_row(f"… {format_count(len(plan.swaps) - _SHOWN)} more", *[""] * 5)
    return table


def _list_apart(plan: SwapPlan) -> list[str]:
    lines = [
        f"The component of {to_one_line(describe(part['factor']))}: {part['reason']}" for part in plan.apart[:_SHOWN]
    ]
    return lines + ([f"… {format_count(len(plan.apart) - _SHOWN)} more"] if len(plan.apart) > _SHOWN else [])


def _describe_precision(plan: SwapPlan) -> list[str]:
    after = [row["se_after"] for row in plan.precision if row["se_after"] is not None]
    before = [row["se_before"] for row in plan.precision if row["se_before"] is not None]
    if not after:
        return []
    largest = f"largest {max(before):.3g} → {max(after):.3g}"
    mean = f"mean {sum(before) / len(before):.3g} → {sum(after) / len(after):.3g}"
    return [f"Predicted standard errors of log-propensities, each within what is connected: {largest}, {mean}."]


def _suggest_next(plan: MergePlan | SwapPlan, call: Invocation, out: str | None) -> Text:
    if plan.components_before == 1:
        command, why = call.command("check"), "the verdict"
    elif out is None:
        command, why = call.command("repair", "--method", plan.method, "--out", "plan.json"), "keep the plan"
    else:
        command, why = call.command("check", "--plan", out), "the log under this plan"
    return Text.assemble(("  Next: ", "bold"), command, (f"   # {why}", "dim"))

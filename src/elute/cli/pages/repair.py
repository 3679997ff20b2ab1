"""The page `elute repair` prints: what the plan does, step by step, and how to try it."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.cli.pages import swaps
from elute.cli.pages.merging import show_consequence
from elute.cli.pages.tables import make_table
from elute.cli.text import format_count, to_one_line
from elute.repair.plan import MergePlan, SwapPlan
from elute.results.invocation import Invocation

_SHOWN = 12
_MARKS = {"good": ("✓", "bold green"), "warn": ("!", "bold yellow"), "bad": ("✗", "bold red"), "calm": ("·", "bold")}


def show(console: Console, plan: MergePlan | SwapPlan, call: Invocation, out: str | None) -> None:
    """Print the page."""
    console.print(Padding(_write_sentence(plan), (1, 2)))
    if isinstance(plan, SwapPlan):
        swaps.show(console, plan)
    elif plan.pairs:
        console.print(Padding(_tabulate_pairs(plan), (0, 2, 1, 2)))
    if isinstance(plan, MergePlan) and plan.pairs and plan.consequence is not None:
        show_consequence(console, plan, plan.consequence)
    console.print(_suggest_next(plan, call, out), soft_wrap=True)


def _write_sentence(plan: MergePlan | SwapPlan) -> Text:
    card = plan.card()
    mark, style = _MARKS[card.tone]
    return Text(
        f"{mark} {card.word}: {card.sentence}" if card.tone == "warn" else f"{mark} {card.sentence}", style=style
    )


def _tabulate_pairs(plan: MergePlan) -> Table:
    table = make_table("merge", "with", "cost")
    for pair in plan.pairs[-_SHOWN:][::-1]:
        table.add_row(
            Text(to_one_line(describe(pair.a), 60)), Text(to_one_line(describe(pair.b), 60)), f"{pair.cost:.4g}"
        )
    if len(plan.pairs) > _SHOWN:
        table.add_row(f"… {format_count(len(plan.pairs) - _SHOWN)} cheaper pairs", "", "")
    return table


def _suggest_next(plan: MergePlan | SwapPlan, call: Invocation, out: str | None) -> Text:
    if plan.components_before == 1 and not (isinstance(plan, SwapPlan) and plan.parts_before > 1):
        command, why = call.command("check"), "the verdict"
    elif out is None:
        command, why = call.command("repair", "--method", plan.method, "--out", "plan.json"), "keep the plan"
    else:
        command, why = call.command("check", "--plan", out), "the log under this plan"
    return Text.assemble(("  Next: ", "bold"), command, (f"   # {why}", "dim"))

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
from elute.repair.plan import AnyPlan, MergePlan, ScorePlan, SwapPlan
from elute.results.invocation import Invocation, spell_options

_SHOWN = 12
_MARKS = {"good": ("✓", "bold green"), "warn": ("!", "bold yellow"), "bad": ("✗", "bold red"), "calm": ("·", "bold")}


def show(console: Console, plan: AnyPlan, call: Invocation, out: str | None) -> None:
    """Print the page."""
    console.print(Padding(_write_sentence(plan), (1, 2)))
    if isinstance(plan, SwapPlan):
        swaps.show(console, plan)
    elif isinstance(plan, ScorePlan):
        console.print(Padding(_tabulate_links(plan), (0, 2, 1, 2)))
    elif plan.pairs:
        console.print(Padding(_tabulate_pairs(plan), (0, 2, 1, 2)))
    if isinstance(plan, MergePlan) and plan.pairs and plan.consequence is not None:
        show_consequence(console, plan, plan.consequence)
    console.print(_suggest_next(plan, call, out), soft_wrap=True)


def _write_sentence(plan: AnyPlan) -> Text:
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


def _tabulate_links(plan: ScorePlan) -> Table:
    """How components stand to each other; of one component, all that the plan says of it."""
    table = make_table("factor", "to", "ratio", "± 2 se of log")
    rows = plan.contents.links or [
        {"a": row["factor"], "b": {}, "ratio": row["propensity"], "log_se": row["log_se"]}
        for row in plan.contents.propensities
    ]
    for row in rows[:_SHOWN]:
        ratio, error = row["ratio"], row["log_se"]
        said = "–" if error is None else "reference" if error == 0 else f"{2 * error:.3f}"
        ends = (Text(to_one_line(describe(row[end]), 60)) if row[end] else Text("the largest") for end in ("a", "b"))
        table.add_row(*ends, "–" if ratio is None else f"{ratio:.3f}", said)
    if len(rows) > _SHOWN:
        table.add_row(f"… {format_count(len(rows) - _SHOWN)} more", "", "", "")
    return table


def _suggest_next(plan: AnyPlan, call: Invocation, out: str | None) -> Text:
    if _repairs_nothing(plan):
        command, why = call.command("check"), "the verdict"
    elif out is None:
        given = spell_options(plan.provenance.options) if isinstance(plan, ScorePlan) else ()
        command, why = call.command("repair", "--method", plan.method, *given, "--out", "plan.json"), "keep the plan"
    else:
        command, why = call.command("check", "--plan", out), "the log under this plan"
    return Text.assemble(("  Next: ", "bold"), command, (f"   # {why}", "dim"))


def _repairs_nothing(plan: AnyPlan) -> bool:
    if isinstance(plan, ScorePlan):
        return not (plan.assumption.components_placed or plan.assumption.components_combined)
    return plan.components_before == 1 and not (isinstance(plan, SwapPlan) and plan.parts_before > 1)

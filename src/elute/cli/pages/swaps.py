"""What `elute repair --method swap` prints of its plan: the swaps, what stands in the way, and the plan beside standard
experiments."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.cli.pages.tables import make_table
from elute.cli.text import format_count, to_one_line
from elute.repair.plan import SwapPlan
from elute.repair.swap_card import format_loss, list_designs

_SHOWN = 12
_REASONS = 5


def show(console: Console, plan: SwapPlan) -> None:
    """Print it."""
    if plan.swaps:
        console.print(Padding(_tabulate_swaps(plan), (0, 2, 1, 2)))
    for lines in (_list_obstacles(plan), _list_fixed(plan), _describe_precision(plan), list(plan.limits["notes"])):
        if lines:
            console.print(Padding(Text("\n".join(line[:1].upper() + line[1:] for line in lines)), (0, 2, 1, 2)))
    if plan.designs:
        console.print(Padding(Text(_introduce_designs(plan)), (0, 2, 0, 2)))
        console.print(Padding(_tabulate_designs(plan), (0, 2, 1, 2)))


def _tabulate_swaps(plan: SwapPlan) -> Table:
    table = make_table("show", "instead of", "at", "impressions", "of its pages", "expected CTR", "users lose")
    for swap in plan.swaps[:_SHOWN]:
        words = ("·".join(map(str, swap.item.values())), describe(swap.source), describe(swap.target))
        texts = (Text(to_one_line(word, 40)) for word in words)
        figures = f"{swap.share:.1%}", f"{swap.click_probability:.1%}", format_loss(swap.users_lose, plan.limits)
        table.add_row(*texts, format_count(swap.impressions), *figures)
    if len(plan.swaps) > _SHOWN:
        table.add_row(f"… {format_count(len(plan.swaps) - _SHOWN)} more", *[""] * 6)
    return table


def _list_obstacles(plan: SwapPlan) -> list[str]:
    """Reasons, the most frequent first, with how many parts each keeps apart and one of them."""
    counted = Counter(part["reason"] for part in plan.infeasible)
    example = {part["reason"]: describe(part["factor"]) for part in reversed(plan.infeasible)}
    lines = []
    for reason, number in counted.most_common(_REASONS):
        parts = "1 part" if number == 1 else f"{format_count(number)} parts"
        stays = "stays" if number == 1 else "stay"
        lines.append(f"{parts} ({to_one_line(example[reason])}{', …' if number > 1 else ''}) {stays} apart: {reason}.")
    return lines


def _list_fixed(plan: SwapPlan) -> list[str]:
    fixed = plan.limits["fixed"]
    return [f"fixed: {'; '.join(f'{column} ({why})' for column, why in fixed.items())}."] if fixed else []


def _describe_precision(plan: SwapPlan) -> list[str]:
    after = [row["se_after"] for row in plan.precision if row["se_after"] is not None]
    before = [row["se_before"] for row in plan.precision if row["se_before"] is not None]
    if not after or not before:
        return []
    largest = f"largest {max(before):.3g} → {max(after):.3g}"
    mean = f"mean {sum(before) / len(before):.3g} → {sum(after) / len(after):.3g}"
    return [f"Predicted standard errors of log-propensities, each within what is connected: {largest}, {mean}."]


def _introduce_designs(plan: SwapPlan) -> str:
    share = f"on {plan.limits['share']:.0%} of the pages"
    return f"Beside standard experiments {share}, until propensities are known as well as by the plan:"


def _tabulate_designs(plan: SwapPlan) -> Table:
    days = plan.limits["log_days"] is not None
    table = make_table("", "moved impressions", "days" if days else "× the log's time", "clicks lost", "largest se")
    for row in list_designs(plan.to_dict()):
        table.add_row(*row)
    return table

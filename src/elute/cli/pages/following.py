"""The page `elute repair --continue` prints: whether to stop, what every swap has taught, and what comes next."""

from __future__ import annotations

import math
import shlex

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.cli.text import format_count, to_one_line
from elute.repair.looks.card import write_price
from elute.repair.looks.following import FollowedSwap, Following

_SHOWN, _SOURCES = 12, 3
_MARKS = {"good": ("✓", "bold green"), "warn": ("!", "bold yellow"), "calm": ("·", "bold")}


def show(console: Console, found: Following, out: str | None) -> None:
    """Print the page."""
    card = found.card()
    mark, style = _MARKS[card.tone]
    console.print(Padding(Text(f"{mark} {card.word}. {card.sentence}", style=style), (1, 2)))
    console.print(Padding(_tabulate(found), (0, 2, 1, 2)))
    lines = [*_list_sources(found), write_price(found.to_dict()), *found.notes]
    console.print(Padding(Text("\n".join(lines), style="dim"), (0, 2, 1, 2)))
    console.print(_suggest_next(found, out), soft_wrap=True)


def _tabulate(found: Following) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("item", "from", "to", "shown", "clicks", "left", "propensity, from : to"):
        table.add_column(column, justify="right" if column in ("shown", "clicks", "left") else "left")
    for swap in sorted(found.swaps, key=lambda swap: swap.done)[:_SHOWN]:
        words = ("·".join(map(str, swap.item.values())), describe(swap.source), describe(swap.target))
        table.add_row(
            *(Text(to_one_line(word, 40)) for word in words),
            *map(format_count, (swap.impressions_seen, swap.clicks_seen)),
            "done" if swap.done else format_count(swap.impressions_left),
            _write_ratio(swap),
        )
    if len(found.swaps) > _SHOWN:
        table.add_row(f"… {format_count(len(found.swaps) - _SHOWN)} more", *[""] * 6)
    return table


def _list_sources(found: Following) -> list[str]:
    """Items that lack impressions where they are known from."""
    wanted: dict[str, int] = {}
    for swap in found.swaps:
        if swap.impressions_left_at_source:
            name = f"{'·'.join(map(str, swap.item.values()))} under {describe(swap.source)}"
            wanted[name] = max(wanted.get(name, 0), swap.impressions_left_at_source)
    shown = [f"{format_count(n)} of {to_one_line(name, 60)}" for name, n in list(wanted.items())[:_SOURCES]]
    more = f" and {len(wanted) - _SOURCES:,} more" if len(wanted) > _SOURCES else ""
    return [f"Also where items are known from: {', '.join(shown)}{more}."] if wanted else []


def _write_ratio(swap: FollowedSwap) -> str:
    if swap.log_ratio is None or swap.low is None or swap.high is None:
        return "not known yet"
    ends = [f"{math.exp(end):.3g}" if abs(end) < 20 else "…" for end in (swap.low, swap.high)]
    return f"{math.exp(swap.log_ratio):.3g} ({ends[0]} to {ends[1]})"


def _suggest_next(found: Following, out: str | None) -> Text:
    logs = [found.provenance.log, *(log for look in found.rest.history for log in look["log"] or ())]
    if found.stop:
        command, why = shlex.join(["elute", "check", *logs]), "what the log has become"
    elif out is None:
        command, why = "elute repair --continue PLAN --log NEW --out PLAN", "keep the plan for what is left"
    else:
        command, why = shlex.join(["elute", "repair", "--continue", out, "--log", "NEW"]), "when more has been shown"
    return Text.assemble(("  Next: ", "bold"), command, (f"   # {why}", "dim"))

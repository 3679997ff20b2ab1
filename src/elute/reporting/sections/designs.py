"""A swap plan beside standard experiments that lead to the same precision."""

from __future__ import annotations

from typing import Any

from elute._util.text import format_count
from elute.repair.plan import SwapPlan
from elute.reporting.charts.looks import ACCENT, SERIES, draw_bars, name_field
from elute.reporting.parts import Block, Figure, Grid


def show_designs(plan: SwapPlan) -> list[Block]:
    """A table of what each takes, and a chart of what users lose; nothing where there is nothing to compare with."""
    if not plan.designs:
        return []
    own = {**plan.forecast, "parts_after": plan.parts_after, "reaches_target": plan.parts_after == 1}
    rows = [("this plan", own), *((str(row["name"]), row) for row in plan.designs)]
    days = plan.limits["log_days"] is not None
    figures = ("impressions moved", "days" if days else "× the log's time", "clicks that users lose", "largest error")
    share = f"{plan.limits['share']:.0%}"
    table = Grid(
        ("", *figures),
        [(name, *_list_figures(row, days)) for name, row in rows],
        figures,
        f"Each on {share} of the pages, until propensities are known as well as the plan makes them. Largest error: "
        "the largest standard error of a log propensity.",
    )
    return [table, _draw_losses(rows)]


def _list_figures(row: dict[str, Any], days: bool) -> tuple[str, ...]:
    time, error = row["days"] if days else row["log_lengths"], row["largest_log_se"]
    late = "" if row["reaches_target"] else "more than "
    return (
        format_count(int(row["impressions"])),
        f"{late}{time:.2g}",
        f"{row['users_lose']:.3g}",
        f"{error:.2g}" if error is not None else f"{row['parts_after']:,} parts apart",
    )


def _draw_losses(rows: list[tuple[str, dict[str, Any]]]) -> Figure:
    bars = [
        {
            "label": name,
            "value": float(row["users_lose"]),
            "text": f"{row['users_lose']:.3g}",
            "series": "the plan" if name == "this plan" else "experiments",
        }
        for name, row in rows
    ]
    colour = name_field("series", scale={"domain": ["the plan", "experiments"], "range": [ACCENT, SERIES[1]]})
    return Figure(
        "designs",
        "What users lose",
        draw_bars(bars, "expected clicks lost", colour=colour),
        "Expected clicks that users lose until propensities are known as well as by the plan.",
        "The shorter a bar, the less an experiment costs. Time and impressions are in the table.",
    )

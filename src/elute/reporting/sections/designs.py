"""A swap plan beside standard experiments that lead to the same precision."""

from __future__ import annotations

from elute.repair.plan import SwapPlan
from elute.repair.swap_card import list_designs
from elute.reporting.charts.looks import ACCENT, SERIES, draw_bars, name_field
from elute.reporting.parts import Block, Figure, Grid


def show_designs(plan: SwapPlan) -> list[Block]:
    """A table of what each takes, and a chart of what users lose where that is known; nothing where there is nothing to
    compare with."""
    if not plan.designs:
        return []
    days = plan.limits["log_days"] is not None
    figures = ("impressions moved", "days" if days else "× the log's time", "clicks that users lose", "largest error")
    share = f"{plan.limits['share']:.0%}"
    table = Grid(
        ("", *figures),
        list_designs(plan.to_dict()),
        figures,
        f"Each on {share} of the pages, until propensities are known as well as the plan makes them. Largest error: "
        "the largest standard error of a log propensity.",
    )
    return [table] if plan.limits["guessed"] else [table, _draw_losses(plan)]


def _draw_losses(plan: SwapPlan) -> Figure:
    rows = [("this plan", plan.forecast), *((str(row["name"]), row) for row in plan.designs)]
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

"""The section on the repair plan: what it joins, at what cost, before and after."""

from __future__ import annotations

from elute._util.text import format_count, to_one_line
from elute.cells.factors import describe
from elute.checking.check import Check
from elute.repair.plan import AnyPlan, MergePlan, ScorePlan, SwapPlan
from elute.repair.swap_card import format_loss
from elute.reporting.charts.looks import (
    ACCENT,
    FAINT,
    INK,
    SERIES,
    chart,
    draw_bars,
    name_field,
    number_field,
    separate_labels,
    tooltip,
)
from elute.reporting.parts import Block, Figure, Grid, Note, Section, Spec
from elute.reporting.sections.designs import show_designs
from elute.reporting.sections.merging import show_consequence
from elute.reporting.sections.shares import share_bars

_ROWS = 12
_FACTORS = 30


def plan_section(check: Check, repaired: Check, plan: AnyPlan) -> Section:
    """A plan and its effect."""
    blocks: list[Block] = [Note(repaired.caution, "warn")] if repaired.caution else []
    blocks.append(_draw_effect(check, repaired))
    if isinstance(plan, ScorePlan):
        note = Note(plan.assumption.sentence, "warn" if plan.assumption.doubted else "calm")
        blocks += [note, _tabulate_links(plan)]
    else:
        blocks += [_tabulate_pairs(plan), *show_consequence(plan)] if isinstance(plan, MergePlan) else _show_swaps(plan)
    return Section("plan", "Repair plan, before and after", _write_lead(check, repaired, plan), blocks)


def _write_lead(check: Check, repaired: Check, plan: AnyPlan) -> str:
    if isinstance(plan, ScorePlan):
        return f"The score puts all factors on one scale. {plan.contents.score['sentence']}"
    if check.recoverable:
        return "Nothing to connect: items link all factors as it is."
    if isinstance(plan, MergePlan):
        what = f"{_count_words(len(plan.pairs), 'pair')} of factors that share one propensity"
        price = "The price is an error where the two are not seen equally often."
    else:
        what = f"{_count_words(len(plan.swaps), 'swap')} shown to users"
        price = "The price is what users are shown in the meantime."
    steps = len(plan.pairs) if isinstance(plan, MergePlan) else len(plan.swaps)
    after = "one" if repaired.recoverable else format_count(repaired.components)
    ranked = ""
    if check.ranking is not None and repaired.ranking is not None:
        before = format_count(check.ranking.rankable)
        ranked = f", and {before} rankable queries into {format_count(repaired.ranking.rankable)}"
    turns = "turns" if steps == 1 else "turn"
    return f"{what} {turns} {format_count(check.components)} components into {after}{ranked}. {price}"


def _count_words(n: int, word: str) -> str:
    return f"{format_count(n)} {word}{'' if n == 1 else 's'}"


def _draw_effect(check: Check, repaired: Check) -> Figure:
    """The shares of `rankable_section`, twice."""
    now, then = "as the log is", "with the plan"
    bars = [
        {**bar, "label": bar["label"] + mark, "series": series}
        for pair in zip(share_bars(check), share_bars(repaired), strict=True)
        for bar, mark, series in zip(pair, ("", ", repaired"), (now, then), strict=True)
    ]
    colour = name_field("series", scale={"domain": [now, then], "range": [FAINT, ACCENT]})
    return Figure(
        "repaired",
        "What can be compared, before and after",
        draw_bars(bars, "share", colour=colour, most=1.0, share=True),
        "The shares of rankable queries, of comparable pairs within queries and of impressions in the largest "
        "component: as the log is, and as if the plan had been carried out.",
        "The longer the blue bars beside the grey ones, the more the plan brings. All at 100%: one scale for all.",
    )


def _tabulate_pairs(plan: MergePlan) -> Grid:
    worst = plan.pairs[-_ROWS:][::-1]
    more = len(plan.pairs) - len(worst)
    return Grid(
        ("merge", "with", "cost"),
        [(to_one_line(describe(pair.a), 60), to_one_line(describe(pair.b), 60), f"{pair.cost:.4g}") for pair in worst],
        numeric=("cost",),
        caption=f"And {_count_words(more, 'cheaper pair')}." if more else "",
    )


def _tabulate_links(plan: ScorePlan) -> Grid:
    links = plan.contents.links
    lines = [
        (
            *(to_one_line(describe(link[end]), 60) for end in ("a", "b")),
            *("–" if link[name] is None else f"{link[name]:.3g}" for name in ("ratio", "log_se")),
        )
        for link in links[:_ROWS]
    ]
    more = len(links) - len(lines)
    caption = f"And {_count_words(more, 'more')}." if more > 0 else ""
    return Grid(("factor", "to", "ratio", "standard error of its log"), lines, ("ratio",), caption)


def _show_swaps(plan: SwapPlan) -> list[Block]:
    lines = [
        (
            " · ".join(to_one_line(value, 24) for value in swap.item.values()),
            to_one_line(describe(swap.source)),
            to_one_line(describe(swap.target)),
            format_count(swap.impressions),
            f"{swap.share:.1%}",
            f"{swap.click_probability:.1%}",
            format_loss(swap.users_lose, plan.limits),
        )
        for swap in plan.swaps[:_ROWS]
    ]
    more = len(plan.swaps) - len(lines)
    figures = ("impressions", "of its pages", "expected click rate", "clicks that users lose")
    caption = f"And {_count_words(more, 'more')}." if more > 0 else ""
    blocks: list[Block] = [Grid(("show item", "instead of", "under", *figures), lines, figures, caption)]
    blocks += [
        Note(
            f"The part of {to_one_line(describe(part['factor']))} stays apart: {to_one_line(part['reason'], 240)}",
            "warn",
        )
        for part in plan.infeasible[:3]
    ]
    blocks += [Note(note[:1].upper() + note[1:] + ".", "warn") for note in plan.limits["notes"]]
    figure = _draw_precision(plan)
    blocks += [figure] if figure is not None else []
    return blocks + show_designs(plan)


def _draw_precision(plan: SwapPlan) -> Figure | None:
    """Standard errors before and after, where the plan spends a budget."""
    known = [row for row in plan.precision if row["se_after"] is not None and row["se_before"] is not None]
    worst = sorted(known, key=lambda row: -row["se_before"])[:_FACTORS]
    if not worst:
        return None
    bars = [
        {
            "label": to_one_line(describe(row["factor"])),
            "from": row["se_before"],
            "to": row["se_after"],
            "text": f"{row['se_before']:.3g}, then {row['se_after']:.3g}",
        }
        for row in worst
    ]
    along = number_field("from", "standard error of log propensity", scale={"domainMin": 0})
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK})
    words = tooltip(label=" ", text="standard error")
    layers: list[Spec] = [
        {"mark": {"type": "rule", "color": FAINT}, "encoding": {"x": along, "x2": {"field": "to"}}},
        {"mark": {"type": "circle", "size": 60, "opacity": 1, "color": SERIES[1]}, "encoding": {"x": along}},
        {
            "mark": {"type": "circle", "size": 90, "opacity": 1, "color": ACCENT},
            "encoding": {"x": {**along, "field": "to"}, "tooltip": words},
        },
    ]
    return Figure(
        "precision",
        "Predicted precision",
        chart(separate_labels(bars), 26 * len(bars) + 20, layers, encoding={"y": down}),
        "The standard error of each factor's log propensity now (red) and once the swaps have been shown (blue).",
        "The further to the left the blue dot, the more the planned impressions buy.",
    )

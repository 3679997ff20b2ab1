"""The section on bounds: what can be said across components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elute._util.text import format_count, format_share, to_one_line
from elute.cells.factors import describe
from elute.checking.check import Check
from elute.fits.fit import Fit
from elute.reporting.charts.looks import ACCENT, FAINT, INK, chart, draw_bars, name_field, number_field, separate_labels
from elute.reporting.charts.looks import tooltip as tell
from elute.reporting.parts import Block, Figure, Grid, Note, Section, Spec

_FARTHEST = 1e4
"""Ratios beyond which an interval is cut off in the chart."""


def bounds_section(check: Check, fits: Sequence[Fit]) -> Section | None:
    """Bounds of a fit that has some, else those of the check; None where there is one component, or no bounds."""
    assumed = [fit for fit in fits if "bounds" in fit.summary]
    found: dict[str, Any] | None = None
    if assumed:
        found = assumed[0].summary["bounds"]
    elif check.bounds is not None:
        found = check.bounds.to_dict()
    if found is None:
        return None
    blocks: list[Block] = []
    if len(found["components"]) > 1:
        blocks.append(_draw_scales(found["components"]))
    if found["ordered_pairs_share"] is not None:
        blocks.append(_draw_shares(check, found))
    rows = [(one["what"], format_count(one["count"])) for one in found["constraints"]]
    said = "Everything that bounds the scales, with 95% confidence in all of it together."
    blocks.append(Grid(("what", "how many"), rows, numeric=("how many",), caption=said))
    blocks += [Note(f"{note[:1].upper()}{note[1:]}.") for note in found["notes"]]
    if not found["consistent"]:
        blocks.append(Note("Either an assumption is wrong, or clicks do not follow the model r·o.", "bad"))
    return Section("bounds", "Across components", to_one_line(found["sentence"], 400), blocks)


def _draw_scales(components: list[dict[str, Any]]) -> Figure:
    return Figure(
        "bounds",
        "Scales of the components",
        draw_ranges([_describe_scale(one) for one in components], "seen … times as often as the first"),
        "For each component, how often its reference is seen, at least and at most, relative to that of the largest "
        "component: what clicks, r ≤ 1, o ≤ 1 and the assumptions leave open.",
        "A short line: relevance can nearly be compared across. A line on one side of 1: which of the two is seen more "
        "is known. A line to the edge of the chart has no bound there.",
    )


def _describe_scale(one: dict[str, Any]) -> dict[str, Any]:
    high = "no bound" if one["high"] is None else f"{one['high']:.3g}"
    return {
        "label": to_one_line(describe(one["factor"])),
        "low": max(one["low"], 1 / _FARTHEST),
        "high": min(one["high"] or _FARTHEST, _FARTHEST),
        "text": f"{one['low']:.3g} to {high}",
    }


def draw_ranges(rows: list[dict[str, Any]], title: str) -> Spec:
    """A line from `low` to `high` for each `label`, on a logarithmic scale, beside a line at 1."""
    scale: Spec = {"type": "log", "nice": False}
    axis: Spec = {"tickCount": 6, "domain": False, "format": "~g"}
    along = number_field("low", title, scale=scale, axis=axis)
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK, "labelPadding": 8})
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeDash": [4, 4], "color": FAINT}, "encoding": {"x": {"datum": 1}}},
        {
            "mark": {"type": "rule", "strokeWidth": 5, "strokeCap": "round", "color": ACCENT},
            "encoding": {"y": down, "x": along, "x2": {"field": "high"}, "tooltip": tell(label=" ", text=title)},
        },
    ]
    return chart(separate_labels(rows), 26 * len(rows) + 20, layers)


def _draw_shares(check: Check, found: dict[str, Any]) -> Figure:
    before = None if check.ranking is None else check.ranking.share
    shares = {
        "pairs across components in order": found["ordered_pairs_share"],
        "queries rankable without bounds": before,
        "queries rankable with bounds": found["rankable_share_with_bounds"],
    }
    rows = [
        {"label": label, "value": value, "text": format_share(value)}
        for label, value in shares.items()
        if value is not None
    ]
    return Figure(
        "ordered",
        "What bounds put in order",
        draw_bars(rows, "share", most=1.0, share=True),
        f"Of the {format_count(found['cross_pairs'])} pairs of items of one query in different components, the share "
        "whose order is certain all the same; and of the queries, those whose items can all be put in order.",
        "Long bars: little is lost by the log being apart. Short ones: repair it, or assume more and say so.",
    )

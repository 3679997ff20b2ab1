"""One look for all charts of a page: colours that follow the page from light to dark, sizes, pieces of specs.

Colours are CSS variables with a colour to fall back on, so that a chart needs no drawing anew when the page turns
dark or goes to a printer, and still is a chart outside the page. Field names are ours, never a log's: text from
logs enters charts as data and titles only, never as names or expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elute.reporting.parts import Spec

Rows = Sequence[dict[str, Any]]

_SERIES = ("#2a6f97", "#c8553d", "#5a8a3c", "#7b5ea7", "#b8860b", "#3d8c95", "#8a5a44")
SERIES = tuple(f"var(--series-{number_field}, {colour})" for number_field, colour in enumerate(_SERIES, start=1))
"""Told apart also by readers who do not see red and green apart."""

INK, FAINT, LINE = "var(--ink, #1c2126)", "var(--faint, #7a828a)", "var(--line, #d9dde1)"
GOOD, WARN, BAD = "var(--good, #2e7d5b)", "var(--warn, #a86a00)", "var(--bad, #b3402e)"
ACCENT = SERIES[0]

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

CONFIG: Spec = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT,
        "titleColor": FAINT,
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 180,
        "titlePadding": 8,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": FAINT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "orient": "top",
        "labelLimit": 220,
        "columns": 4,
    },
    "text": {"color": INK, "fontSize": 12},
    "rule": {"color": FAINT},
    "range": {"category": list(SERIES)},
}


def chart(rows: Rows, height: int, layers: list[Spec], **more: Any) -> Spec:
    """Layers over the same rows, as wide as the page."""
    return frame(height, layers, data={"values": list(rows)}, **more)


def frame(height: int, layers: list[Spec], **more: Any) -> Spec:
    """Layers as wide as the page, each with its own data."""
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": CONFIG,
        "layer": layers,
        **more,
    }


def widen(spec: Spec) -> Spec:
    """A chart made for a picture, as wide as the page and in its colours."""
    page: Spec = {
        "$schema": _SCHEMA,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": CONFIG,
    }
    return {**spec, **page, "background": "transparent"}


def number_field(field: str, title: str | None, **more: Any) -> Spec:
    """A quantity; `more`: scale, axis."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def name_field(field: str, title: str | None = None, **more: Any) -> Spec:
    """A category, in the order of the rows."""
    return {"field": field, "type": "nominal", "sort": None, "title": title, **more}


def position_axis(title: str) -> Spec:
    """Positions from left to right."""
    scale = {"zero": False, "nice": False, "padding": 12}
    return number_field("x", title, scale=scale, axis={"tickMinStep": 1, "grid": False})


def tooltip(**fields: str) -> list[Spec]:
    """What hovering shows: fields with the words for them; numbers are texts by then."""
    return [{"field": field, "type": "nominal", "title": title} for field, title in fields.items()]


def separate_labels(rows: Rows) -> list[dict[str, Any]]:
    """Rows whose `label` is each one's own: long names that were cut alike would share a line."""
    seen: dict[str, int] = {}
    out = []
    for row in rows:
        times = seen[row["label"]] = seen.get(row["label"], 0) + 1
        out.append(row if times == 1 else {**row, "label": f"{row['label']} ({times})"})
    return out


def draw_bars(rows: Rows, title: str, *, colour: Any = None, most: float | None = None, share: bool = False) -> Spec:
    """A bar for each `label`, as long as `value`, with `text` at its end."""
    widest = 1.2 * max((row["value"] for row in rows), default=1.0)
    scale: Spec = {"domain": [0, widest if most is None else most], "nice": False}
    whole = all(isinstance(row["value"], int) for row in rows)
    axis: Spec = {"tickCount": 5, "domain": False}
    if share:
        axis["format"] = "%"
    elif whole:
        axis["tickMinStep"] = 1
    along = number_field("value", title, scale=scale, axis=axis)
    height = 30 * len(rows) + 10
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK, "labelPadding": 8})
    words = tooltip(label=" ", text=title)
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.62}, "cornerRadiusEnd": 2, "color": ACCENT},
            "encoding": {"x": along, "tooltip": words, **({"color": colour} if colour is not None else {})},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 6},
            "encoding": {"x": along, "text": {"field": "text", "type": "nominal"}},
        },
    ]
    return chart(separate_labels(rows), height, layers, encoding={"y": down})

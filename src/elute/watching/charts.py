"""Charts of figures over time: one large, or many small ones side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elute.reporting.charts.looks import ACCENT, BAD, CONFIG, FAINT, chart, number_field, tooltip
from elute.reporting.parts import Spec
from elute.watching.calendar import read_times

Rows = Sequence[dict[str, Any]]

_COLUMNS, _SMALL = 3, (212, 96)
"""Small charts in a row, and the size of each."""


def draw_series(rows: Rows, title: str, *, share: bool = False, height: int = 170) -> Spec:
    """A line over time: `t`, `y`, a band from `low` to `high`, a mark where `alarm` is set; `text` and `limits` in
    words."""
    return chart(rows, height, _layer(rows, title, share))


def draw_many(rows: Rows, title: str) -> Spec:
    """The same for every `group`, on one scale."""
    width, height = _SMALL
    order = list(dict.fromkeys(row["group"] for row in rows))
    facet = {"field": "group", "type": "nominal", "sort": order, "title": None, "header": {"labelLimit": width}}
    return {
        "$schema": chart((), 0, [])["$schema"],
        "config": {**CONFIG, "header": {"labelColor": FAINT, "labelFontSize": 12, "labelAnchor": "start"}},
        "data": {"values": list(rows)},
        "facet": facet,
        "columns": _COLUMNS,
        "spacing": 18,
        "spec": {"width": width, "height": height, "layer": _layer(rows, title, False, small=True)},
    }


def _layer(rows: Rows, title: str, share: bool, small: bool = False) -> list[Spec]:
    x, format_y = _time_axis(rows, small), {"format": "%"} if share else {}
    scale: Spec = {"zero": False, "nice": True, **_find_domain(rows)}
    axis = {"tickCount": 3 if small else 5, "domain": False, **format_y}
    words = tooltip(t_text=" ", text=title, limits="no alarm within", said="alarm")

    def place(field: str) -> Spec:
        return number_field(field, None if small else title, scale=scale, axis=axis)

    layers: list[Spec] = []
    if any("low" in row and "high" in row for row in rows):
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "mark": {"type": "area", "opacity": 0.16, "color": ACCENT, "clip": True},
                "encoding": {"x": x, "y": place("low"), "y2": {"field": "high"}},
            }
        )
    if any("bar_low" in row for row in rows):
        layers.append(
            {
                "mark": {"type": "rule", "color": FAINT, "opacity": 0.6, "clip": True},
                "encoding": {"x": x, "y": place("bar_low"), "y2": {"field": "bar_high"}},
            }
        )
    red: Spec = {"condition": {"test": "datum.alarm", "value": BAD}, "value": ACCENT}
    large: Spec = {"condition": {"test": "datum.alarm", "value": 90}, "value": 10 if small else 22}
    return [
        *layers,
        {"mark": {"type": "line", "color": ACCENT, "strokeWidth": 1.5}, "encoding": {"x": x, "y": place("y")}},
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {"x": x, "y": place("y"), "color": red, "size": large, "tooltip": words},
        },
    ]


def _find_domain(rows: Rows) -> Spec:
    """All values and the last limits: those of a short baseline are far apart, and would hide the rest."""
    last: dict[Any, dict[str, Any]] = {row.get("group"): row for row in rows}
    ends = [row["y"] for row in rows] + [row[end] for row in last.values() for end in ("low", "high") if end in row]
    if not ends or min(ends) == max(ends):
        return {}
    room = 0.08 * (max(ends) - min(ends))
    return {"domain": [max(0.0, min(ends) - room), max(ends) + room], "nice": False}


def _time_axis(rows: Rows, small: bool) -> Spec:
    """Dates on a scale of time, without a time zone; other names in their order."""
    if read_times([row["t"] for row in rows]) is not None:
        axis: Spec = {"format": "%-d %b", "tickCount": 3 if small else 8, "grid": False, "labelOverlap": True}
        return {"field": "t", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": axis}
    axis = {"labelAngle": 0, "labelOverlap": True, "grid": False, "labelLimit": 60}
    return {"field": "t", "type": "ordinal", "sort": None, "title": None, "axis": axis}

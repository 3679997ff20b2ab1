"""Charts are data: functions from rows to Vega-Lite specs, all with one look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[dict[str, Any]]
Spec = dict[str, Any]

COLOURS = ("#2a6f97", "#c8553d", "#6a994e", "#7b5ea7", "#d4a017", "#3d8c95", "#8a5a44", "#666666")
"""Told apart also by readers who do not see red and green apart; dark enough on white."""

_LOOK: Spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "background": "white",
    "config": {
        "font": "Helvetica, Arial, sans-serif",
        "axis": {"labelFontSize": 11, "titleFontSize": 12, "grid": True, "gridColor": "#eeeeee"},
        "legend": {"labelFontSize": 11, "titleFontSize": 12, "symbolStrokeWidth": 3},
        "view": {"stroke": "#cccccc"},
        "range": {"category": list(COLOURS)},
    },
}


def lines(
    rows: Rows,
    *,
    x: str,
    y: str,
    series: str,
    low: str | None = None,
    high: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    domain: tuple[float, float] | None = None,
    size: tuple[int, int] = (420, 260),
) -> Spec:
    """A line and points for every series; a band between `low` and `high`. Fields are named as they read."""
    scale: Spec = {"zero": False} if domain is None else {"domain": list(domain)}
    scale |= {"type": "log"} if log_y else {}
    axis: Spec = {"format": "~s" if log_x else ",~f", "grid": False}
    spacing: Spec = {"type": "log"} if log_x else {"zero": False, "nice": False}
    across = {"field": x, "type": "quantitative", "title": x, "scale": spacing, "axis": axis}
    legend = {"symbolOpacity": 1, "symbolType": "stroke"}
    colour = {"field": series, "type": "nominal", "sort": None, "title": None, "legend": legend}
    layers: list[Spec] = []
    if low is not None and high is not None:
        edges = {
            "y": {"field": low, "type": "quantitative", "title": y, "scale": scale},
            "y2": {"field": high},
        }
        layers.append({"mark": {"type": "area", "opacity": 0.15}, "encoding": edges})
    up = {"y": {"field": y, "type": "quantitative", "title": y, "scale": scale}}
    layers.append({"mark": {"type": "line", "point": True, "clip": True}, "encoding": up})
    return _chart(rows, {"x": across, "color": colour}, layers, size)


def boxes(rows: Rows, *, x: str, y: str, series: str, log_y: bool = False, size: tuple[int, int] = (420, 260)) -> Spec:
    """A box for every series at every x: quartiles, whiskers to the extremes, a point at the median, which stays
    visible where all values are one."""
    encoding = {
        "x": {"field": x, "type": "ordinal", "sort": None, "title": x, "axis": {"labelAngle": 0}},
        "xOffset": {"field": series, "type": "nominal", "sort": None},
        "color": {"field": series, "type": "nominal", "sort": None, "title": None},
    }
    scale: Spec = {"type": "log"} if log_y else {"zero": False}
    up: Spec = {"field": y, "type": "quantitative", "title": y, "scale": scale}
    layers: list[Spec] = [
        {"mark": {"type": "boxplot", "extent": "min-max", "size": 9, "opacity": 0.5}, "encoding": {"y": up}},
        {"mark": {"type": "point", "filled": True, "size": 30}, "encoding": {"y": {**up, "aggregate": "median"}}},
    ]
    return _chart(rows, encoding, layers, size)


def bars(
    rows: Rows,
    *,
    x: str,
    y: str,
    spread: str | None = None,
    series: str | None = None,
    size: tuple[int, int] = (420, 260),
) -> Spec:
    """A bar for every x, with a whisker of plus and minus `spread`."""
    encoding: Spec = {"x": {"field": x, "type": "nominal", "sort": None, "title": None, "axis": {"labelAngle": 0}}}
    fill: Spec = {"color": {"value": COLOURS[0]}}
    if series is not None:
        encoding["xOffset"] = {"field": series, "type": "nominal", "sort": None}
        fill = {"color": {"field": series, "type": "nominal", "sort": None, "title": None}}
    up = {"y": {"field": y, "type": "quantitative", "title": y}}
    layers: list[Spec] = [{"mark": "bar", "encoding": up | fill}]
    if spread is not None:
        drawn = [row | {"low": row[y] - row[spread], "high": row[y] + row[spread]} for row in rows]
        edges = {"y": {"field": "low", "type": "quantitative", "title": y}, "y2": {"field": "high"}}
        return _chart(drawn, encoding, [*layers, {"mark": "rule", "encoding": edges}], size)
    return _chart(rows, encoding, layers, size)


def cloud(rows: Rows, *, x: str, y: str, series: str, size: tuple[int, int] = (320, 260)) -> Spec:
    """A small point for every row, coloured by series."""
    encoding: Spec = {
        "x": {"field": x, "type": "quantitative", "title": x, "scale": {"zero": False}},
        "color": {"field": series, "type": "ordinal", "title": series, "scale": {"scheme": "viridis"}},
    }
    up = {"y": {"field": y, "type": "quantitative", "title": y}}
    return _chart(rows, encoding, [{"mark": {"type": "circle", "size": 14, "opacity": 0.6}, "encoding": up}], size)


def dots(rows: Rows, *, x: str, y: str, spread: str, size: tuple[int, int] = (420, 260)) -> Spec:
    """A dot for every y on a scale that need not start at 0, with a whisker of plus and minus `spread`."""
    drawn = [row | {"low": row[x] - row[spread], "high": row[x] + row[spread]} for row in rows]
    encoding: Spec = {
        "y": {"field": y, "type": "nominal", "sort": None, "title": None},
        "color": {"value": COLOURS[0]},
    }
    scale: Spec = {"zero": False}
    across = {"x": {"field": x, "type": "quantitative", "title": x, "scale": scale, "axis": {"tickCount": 4}}}
    edges = {"x": {"field": "low", "type": "quantitative", "title": x, "scale": scale}, "x2": {"field": "high"}}
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": edges},
        {"mark": {"type": "circle", "size": 60, "opacity": 1}, "encoding": across},
    ]
    return _chart(drawn, encoding, layers, size)


def place_side_by_side(*specs: Spec) -> Spec:
    """Several charts in one picture, from left to right."""
    inner = [{name: part for name, part in spec.items() if name not in _LOOK} for spec in specs]
    return {**_LOOK, "hconcat": inner, "resolve": {"scale": {"color": "independent"}}}


def add_title(spec: Spec, title: str) -> Spec:
    """The chart with a title over it."""
    return {**spec, "title": {"text": title, "fontSize": 13, "anchor": "start"}}


def _chart(rows: Rows, encoding: Spec, layers: list[Spec], size: tuple[int, int]) -> Spec:
    return {
        **_LOOK,
        "width": size[0],
        "height": size[1],
        "data": {"values": list(rows)},
        "encoding": encoding,
        "layer": layers,
    }


def points(
    rows: Rows, *, x: str, y: str, straight: Mapping[str, tuple[float, float]], size: tuple[int, int] = (260, 260)
) -> Spec:
    """Points with a cross of one standard error each (fields `x`, `y`, `x_se`, `y_se`) and straight lines over them,
    by name their intercept and slope. `x` and `y` here are the axes' titles."""
    drawn = [
        {**row, "left": row["x"] - row["x_se"], "right": row["x"] + row["x_se"]}
        | {"low": row["y"] - row["y_se"], "high": row["y"] + row["y_se"]}
        for row in rows
    ]
    across = (min((row["x"] for row in rows), default=0.0), max((row["x"] for row in rows), default=1.0))
    ends = [
        {"x": at, "y": intercept + slope * at, "line": name}
        for name, (intercept, slope) in straight.items()
        for at in (min(0.0, across[0]), across[1])
    ]
    place: Spec = {
        "x": {"field": "x", "type": "quantitative", "title": x},
        "y": {"field": "y", "type": "quantitative", "title": y},
    }
    faint: Spec = {"type": "rule", "opacity": 0.5, "color": COLOURS[0]}
    legend = {"orient": "bottom", "direction": "vertical"}
    colour: Spec = {"field": "line", "type": "nominal", "sort": None, "title": None, "legend": legend}
    colour["scale"] = {"range": list(COLOURS[1:])}
    layers: list[Spec] = [
        {"mark": faint, "encoding": {**place, "x": {**place["x"], "field": "left"}, "x2": {"field": "right"}}},
        {"mark": faint, "encoding": {**place, "y": {**place["y"], "field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "circle", "size": 25, "color": COLOURS[0], "tooltip": True}, "encoding": place},
        {"mark": {"type": "line", "clip": True}, "data": {"values": ends}, "encoding": {**place, "color": colour}},
    ]
    return _chart(drawn, {}, layers, size)


def intervals(
    rows: Rows, *, label: str, x: str, low: str, high: str, series: str, values: Sequence[str], at: float = 0.0
) -> Spec:
    """A point and a whisker from `low` to `high` for every label, the first on top, beside a line at `at`. `values`:
    those a series may have, in the order of the colours."""
    down = {"field": label, "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}}
    colour = {"field": series, "type": "nominal", "title": None, "scale": {"domain": list(values)}}
    across: Spec = {"type": "quantitative", "title": x}
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": at, "type": "quantitative"}}},
        {
            "mark": "rule",
            "encoding": {"y": down, "color": colour, "x": {"field": low, **across}, "x2": {"field": high}},
        },
        {
            "mark": {"type": "circle", "size": 45, "tooltip": True},
            "encoding": {"y": down, "color": colour, "x": {"field": x, **across}},
        },
    ]
    return _chart(rows, {}, layers, (360, 18 * max(len(rows), 2)))

"""Charts are data: functions from rows to Vega-Lite specs, all with one look."""

from __future__ import annotations

from collections.abc import Sequence
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
    domain: tuple[float, float] | None = None,
    size: tuple[int, int] = (420, 260),
) -> Spec:
    """A line and points for every series; a band between `low` and `high`. Fields are named as they read."""
    scale: Spec = {"zero": False} if domain is None else {"domain": list(domain)}
    axis: Spec = {"format": "~s" if log_x else "~g", "grid": False}
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


def beside(*specs: Spec) -> Spec:
    """Several charts in one picture, from left to right."""
    inner = [{name: part for name, part in spec.items() if name not in _LOOK} for spec in specs]
    return {**_LOOK, "hconcat": inner, "resolve": {"scale": {"color": "independent"}}}


def titled(spec: Spec, title: str) -> Spec:
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

"""The section on propensities: how much less is seen, and how surely that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elute._util.text import format_count, to_one_line
from elute.cells.factors import describe, index_rows, is_position, row_key, to_rows
from elute.checking.check import Check
from elute.fits.contents import find_error_column
from elute.fits.fit import Fit
from elute.reporting.charts.looks import (
    ACCENT,
    INK,
    chart,
    name_field,
    number_field,
    position_axis,
    separate_labels,
    tooltip,
)
from elute.reporting.parts import Block, Figure, Note, Section, Spec
from elute.reporting.sections.effects import draw_effects

_CONTEXTS = 7
"""Contexts that get a line of their own: those with most impressions."""

_BARS = 25

_SHOWS = "The probability that a result is seen, relative to the best-seen factor of its component, which has 1."
_READS = (
    "Bars are plus and minus two standard errors of the logarithm, relative to the factor at 1, which has none. A "
    "steep curve means that raw click rates flatter results that rank high."
)
_FITS = 4


def propensity_section(check: Check, fits: Sequence[Fit]) -> Section | None:
    """The propensities of all fits that have any; None where none has. Without contexts, all fits in one chart."""
    drawn = [(fit, fit.propensities) for fit in fits if fit.propensities is not None][:_FITS]
    if not drawn:
        return None
    blocks: list[Block] = [Note(f"{fit.name}: {fit.reason}", "bad") for fit, _ in drawn if fit.reason]
    bias = list(check.log.roles.bias)
    position = next((column for column in bias if is_position(check.log.survey.factors, column)), None)
    if position is not None and len(bias) == 1:
        points = [point for fit, table in drawn for point in _list_points(check, table, position, fit.name)[0]]
        shows = _SHOWS + (" A line for each fit." if len(drawn) > 1 else "")
        spec = _build_spec(points, position, [], "fit" if len({point["series"] for point in points}) > 1 else None)
        blocks.append(Figure("propensity", "Propensities", spec, shows, _READS))
    else:
        for at, (fit, table) in enumerate(drawn):
            title = "Propensities" + (f" ({fit.name})" if len(drawn) > 1 else "")
            blocks.append(_draw_contexts(check, table, position, title, f"propensity-{at}"))
    tied = [fit.effects for fit, _ in drawn if fit.effects is not None]
    blocks += [draw_effects(effects, f"effects-{at}") for at, effects in enumerate(tied)]
    return Section("propensity", "How much is seen", _write_lead(check, drawn[0][1]), blocks)


def _write_lead(check: Check, table: pa.Table) -> str:
    """The least seen factor."""
    values = np.asarray(table["propensity"].to_numpy(), np.float64)
    known = np.flatnonzero(np.isfinite(values) & (values > 0))
    if len(known) == 0:
        return "No propensity could be estimated."
    least = int(known[np.argmin(values[known])])
    factor = describe(to_rows(table.select(list(check.log.roles.bias)), [least])[0])
    most = "what is seen most in its component" if _has_components(table) else "what is seen most"
    return f"The least-seen factor is {to_one_line(factor, 60)}: {values[least]:.3g} times as often as {most}."


def _draw_contexts(check: Check, table: pa.Table, position: str | None, title: str, chart_key: str) -> Figure:
    if position is None:
        return _draw_without_position(table, list(check.log.roles.bias), title, chart_key)
    points, lines = _list_points(check, table, position)
    shows = f"{_SHOWS} A line for each of the {min(lines, _CONTEXTS)} contexts with most impressions"
    shows += f", of {format_count(lines)}; the band holds the middle 80% of all." if lines > _CONTEXTS else "."
    band = _compute_band(table, position) if lines > _CONTEXTS else []
    return Figure(chart_key, title, _build_spec(points, position, band, "context"), shows, _READS)


def _list_points(check: Check, table: pa.Table, position: str, alone: str = "") -> tuple[list[dict[str, Any]], int]:
    """A row a factor of the busiest contexts, and how many contexts there are. `alone`: the only one's name."""
    bias = list(check.log.roles.bias)
    others = [column for column in bias if column != position]
    where, several = index_rows(check.log.survey.factors), _has_components(table)
    parts = table["component"].to_pylist() if several else [0] * table.num_rows
    shown: dict[str, int] = {}
    points = []
    errors = find_error_column(table)
    named = to_rows(table.select([*bias, "propensity", errors]), range(table.num_rows))
    for row, part in zip(named, parts, strict=True):
        context = ", ".join(f"{column} {to_one_line(row[column], 24)}" for column in others) or alone
        context += f", component {part + 1}" if several else ""
        code = where.get(row_key({column: row[column] for column in bias}))
        shown[context] = shown.get(context, 0) + (0 if code is None else int(check.log.survey.impressions[code]))
        value, error = row["propensity"], row[errors]
        if isinstance(value, float) and value > 0 and isinstance(row[position], int | float):
            points.append({"x": row[position], "y": value, "series": context, **_error_bar(value, error)})
    first = sorted(shown, key=lambda context: (-shown[context], context))[:_CONTEXTS]
    rank = {context: number_ for number_, context in enumerate(first)}
    kept = [point for point in points if point["series"] in rank]
    return sorted(kept, key=lambda point: (rank[point["series"]], point["x"])), len(shown)


def _has_components(table: pa.Table) -> bool:
    """Whether the fit has several components, each at its own scale: no line may join them."""
    return "component" in table.column_names and len(table["component"].unique()) > 1


def _error_bar(value: float, error: object) -> dict[str, Any]:
    """Two standard errors of the log to each side; no bar where there is no error."""
    text = f"{value:.3f}"
    if not isinstance(error, float):
        return {"low": value, "high": value, "text": f"{text} (no error known)"}
    low, high = value * np.exp(-2 * error), min(value * np.exp(2 * error), 5.0)
    return {"low": float(low), "high": float(high), "text": f"{text} ({low:.3f} to {high:.3f})"}


def _build_spec(points: list[dict[str, Any]], position: str, band: list[dict[str, float]], series: str | None) -> Spec:
    """Lines with error bars; `series`: what a line is, None where there is one."""
    top = max((point["y"] for point in points), default=1.0)
    highest = min(max((point["high"] for point in points), default=1.0), 1.5 * top)
    limits = {"domain": [0, 1.05 * max(1.0, top, highest)], "nice": False}
    up = number_field("y", "propensity", scale=limits, axis={"tickCount": 5})
    across = position_axis(position)
    colour = {"color": name_field("series", legend={"columns": 2, "symbolType": "stroke"})} if series else {}
    words = tooltip(x=position, **({"series": series} if series else {}), text="propensity")
    layers: list[Spec] = []
    if band:
        edges = {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}}
        mark = {"type": "area", "opacity": 0.14, "color": INK}
        layers.append({"data": {"values": band}, "mark": mark, "encoding": edges})
    layers += [
        {
            "mark": {"type": "rule", "opacity": 0.6, "color": ACCENT, "clip": True},
            "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, **colour},
        },
        {
            "mark": {"type": "line", "color": ACCENT, "strokeWidth": 2, "clip": True},
            "encoding": {"x": across, "y": up, **colour},
        },
        {
            "mark": {"type": "circle", "size": 60, "opacity": 1, "color": ACCENT, "clip": True},
            "encoding": {"x": across, "y": up, "tooltip": words, **colour},
        },
    ]
    return chart(points, 280, layers)


def _compute_band(table: pa.Table, position: str) -> list[dict[str, float]]:
    """The middle 80% of all contexts at each position."""
    at, values = (np.asarray(table[column].to_numpy(), np.float64) for column in (position, "propensity"))
    known = np.isfinite(values) & np.isfinite(at)
    out = []
    for x in np.unique(at[known]).tolist():
        low, high = np.quantile(values[known & (at == x)], (0.1, 0.9)).tolist()
        out.append({"x": x, "low": low, "high": high})
    return out


def _draw_without_position(table: pa.Table, bias: list[str], title: str, chart_key: str) -> Figure:
    """Factors that have no order: the most and the least seen."""
    values = np.asarray(table["propensity"].to_numpy(), np.float64)
    order = np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable")
    order = order[np.isfinite(values[order])]
    chosen = order if len(order) <= _BARS else np.concatenate([order[: _BARS // 2], order[-(_BARS // 2) :]])
    errors = np.asarray(table[find_error_column(table)].to_numpy(), np.float64)
    points = [
        {
            "label": to_one_line(describe(row), 40),
            "y": float(values[code]),
            **_error_bar(float(values[code]), float(errors[code]) if np.isfinite(errors[code]) else None),
        }
        for code, row in zip(chosen.tolist(), to_rows(table.select(bias), chosen), strict=True)
    ]
    along = number_field("y", "propensity", scale={"domainMin": 0})
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK})
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": ACCENT},
            "encoding": {"x": {**along, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "circle", "size": 70, "opacity": 1, "color": ACCENT},
            "encoding": {"x": along, "tooltip": tooltip(label=" ", text="propensity")},
        },
    ]
    half = (
        "" if len(order) <= _BARS else f" The most and the least seen of {format_count(len(order))} factors are drawn."
    )
    return Figure(
        chart_key,
        title,
        chart(separate_labels(points), 26 * len(points) + 20, layers, encoding={"y": down}),
        _SHOWS + half,
        _READS,
    )

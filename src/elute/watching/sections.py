"""Sections of the page on a watch: figures over time beside the limits within which there is no alarm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from elute._util.text import format_count, format_share, to_one_line
from elute.cells.factors import describe
from elute.reporting.parts import Block, Figure, Grid, Note, Section
from elute.watching.charts import draw_many, draw_series

Fields = Mapping[str, Any]

_BAND = (
    "The band has the values that raise no alarm; it follows the calendar where the baseline tells how. Red: an alarm."
)
_MOST = 12
"""Small charts of a kind: those of the groups with most clicks, or the first."""


def _rows(
    fields: Fields, read: Callable[[Fields], Fields | None], codes: tuple[str, ...], number: Callable[[float], str]
) -> list[dict[str, Any]]:
    """A row for each period of which a figure is known."""
    out = []
    for one in fields["series"]:
        figure = read(one)
        if figure is None or figure["y"] is None:
            continue
        said = ", ".join(code for code in one["alarms"] if code in codes)
        low, high = figure.get("low"), figure.get("high")
        ends = ["…" if end is None else number(end) for end in (low, high)]
        limits = "–" if low is None and high is None else " to ".join(ends)
        out.append(
            {
                **{name: value for name, value in figure.items() if value is not None},
                "t": one["period"],
                "t_text": one["period"],
                "text": number(figure["y"]),
                "limits": limits,
                "said": said or "none",
                "alarm": bool(said),
            }
        )
    return out


def show_amounts(fields: Fields) -> Section:
    def read(name: str, value: str) -> Callable[[Fields], Fields]:
        return lambda one: {
            "y": one["figures"][name][value],
            "low": one["figures"][name]["low"],
            "high": one["figures"][name]["high"],
        }

    traffic = _rows(fields, read("traffic", "impressions"), ("traffic", "doubled"), lambda n: f"{n:,.0f}")
    level = _rows(fields, read("click_rate", "ratio"), ("click_rate",), lambda r: f"{r:.3f}")
    shows = "Impressions of each period."
    blocks: list[Block] = [Figure("traffic", "Impressions", draw_series(traffic, "impressions"), shows, _BAND)]
    if level:
        title, shows = (
            "clicks, times those of all periods",
            (
                "Clicks over those expected of the same items at the same positions: what the mix of items and the "
                "ranking do to the click rate is not in it."
            ),
        )
        blocks.append(Figure("level", "Click rate at a fixed mix of items", draw_series(level, title), shows, _BAND))
    return Section("amounts", "How much", "Impressions, and how often the same items are clicked.", blocks)


def show_groups(fields: Fields) -> Section | None:
    blocks: list[Block] = []
    for test, title, codes, shows in (
        (
            "curve",
            "Propensities beside each other",
            ("curve", "no_clicks"),
            "Clicks of each factor over those expected of its items, beside the level of the period: 1.1 means seen "
            "10% more than the others, compared with all periods.",
        ),
        (
            "links",
            "Links",
            ("links",),
            "Items that were shown both there and elsewhere within a period, over those expected. Without such items "
            "propensities cannot be told from relevance.",
        ),
    ):
        rows = []
        for group, named in enumerate(fields["groups"][:_MOST]):

            def read(one: Fields, group: int = group, test: str = test) -> Fields:
                figure = one["figures"][test][group]
                return {"y": figure["ratio"], "low": figure["low"], "high": figure["high"]}

            of_group = _rows(fields, read, codes, lambda r: f"{r:.3f}")
            told = {alarm["period"]: alarm["where"] for alarm in _alarms(fields) if alarm["code"] in codes}
            top = max((row["y"] for row in of_group), default=1.0)
            for row in of_group:
                row["alarm"] = named["factor"] in told.get(row["t"], [])
                if "low" in row:
                    row.setdefault("high", max(top, row["low"]))  # of links, more is no alarm
                rows.append({**row, "group": to_one_line(named["group"], 40)})
        if rows:
            blocks.append(Figure(test, title, draw_many(rows, "times expected"), shows, _BAND))
    if not blocks:
        return None
    lead = "Each factor against the others, over time: what a redesign, a tracking bug or a new layout would move."
    return Section("factors", "Position by position", lead, blocks)


def _alarms(fields: Fields) -> list[Fields]:
    return [*fields["earlier_alarms"], *fields["alarms"]]


def show_structure(fields: Fields) -> Section | None:
    """What each period tells by itself."""
    checked = [one for one in fields["series"] if one["check"] is not None]
    if not checked:
        return None
    head = (fields["every"], "rung", "components", "rankable", "ordered", "known", "thinnest link")
    rows = [
        (
            one["period"],
            one["check"]["rung"],
            format_count(one["check"]["components"]),
            format_share(one["check"]["rankable_share"]),
            format_share(one["check"]["ordered_share"]),
            format_share(one["check"]["known_share"]),
            _write_link(one["thinnest_link"]),
        )
        for one in reversed(checked[-14:])
    ]
    caption = (
        "Each period as a log of its own: queries that can be ranked, pairs whose order is certain, impressions whose "
        "propensity is known, and the factor that fewest items tie to the others."
    )
    window = fields["window"]
    blocks: list[Block] = []
    if window is not None:
        span = f"{window['first']} to {window['last']}, {window['periods']} periods"
        said = f"{format_share(window['rankable_share'])} of queries rankable, {format_share(window['ordered_share'])}"
        blocks.append(Note(f"The window before the newest period ({span}): {window['rung']}, {said} of pairs certain."))
    blocks.append(Grid(head, rows, head[2:6], caption))
    points = [point for one in checked for point in _list_propensities(one)]
    if points:
        shows = "Propensities that each period gives by itself, with two standard errors of their logarithm."
        reads = "Short periods have wide bars. What changed is tested above, at fixed items, where it shows sooner."
        blocks.append(Figure("propensities", "Propensities by period", draw_many(points, "propensity"), shows, reads))
    lead = "How far each period leads as a log of its own, and the window of those before the newest."
    return Section("structure", "What each period tells", lead, blocks)


def _write_link(thinnest: Fields | None) -> str:
    return "–" if thinnest is None else f"{to_one_line(thinnest['group'], 30)}: {format_count(thinnest['items'])} items"


def _list_propensities(one: Fields) -> list[dict[str, Any]]:
    out = []
    for found in one["check"]["propensities"][:_MOST]:
        value, error = found["propensity"], found["log_se"]
        if value is None or error is None or error > 1:
            continue
        low, high = (value * math.exp(sign * 2 * error) for sign in (-1, 1))
        out.append(
            {
                "t": one["period"],
                "t_text": one["period"],
                "y": value,
                "bar_low": low,
                "bar_high": high,
                "text": f"{value:.3f}",
                "limits": "–",
                "said": "–",
                "alarm": False,
                "group": to_one_line(describe(found["factor"]), 40),
            }
        )
    return out


def show_health(fields: Fields) -> Section:
    names = {
        "dropped_share": "rows left out",
        "repeated_share": "rows repeated on a page",
        "known_items_share": "impressions of known items",
    }
    codes = ("dropped_rows", "repeated_rows", "new_items")
    rows = []
    for (name, said), code in zip(names.items(), codes, strict=True):
        for row in _rows(fields, lambda one, name=name: {"y": one[name]}, (code,), format_share):  # type: ignore[misc]
            rows.append(row | {"group": said})  # noqa: PERF401 (two loops read better)
    spec = draw_many(rows, "share")
    spec["resolve"] = {"scale": {"y": "independent"}}
    figure = Figure(
        "health",
        "Shares of rows and impressions",
        spec,
        "Of each period: rows without an id or an impression, rows that repeat an item on a result page, and "
        "impressions of items that other periods have too.",
        "A jump of the first two is a fault of the export; a fall of the third, most likely, of the ids.",
    )
    return Section("health", "The data", "What no test looks at, and rules do.", [figure])

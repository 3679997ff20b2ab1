"""The section on relevance against click rate: which items a ranking by clicks gets most wrong.

Relevance is at a scale of each component's own, so items of one component are compared, by their rank in it, and of
these only the ones whose place is known (`elute.known.pairs`): those that `elute judge` exports.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.text import format_count, to_one_line
from elute.cells.factors import to_rows
from elute.cells.roles import Roles
from elute.fits.fit import Fit
from elute.judging.judgments import find_known
from elute.reporting.charts.looks import (
    ACCENT,
    FAINT,
    INK,
    SERIES,
    chart,
    frame,
    name_field,
    number_field,
    separate_labels,
    tooltip,
)
from elute.reporting.parts import Block, Figure, Grid, Note, Section, Spec

PRECISE = 0.5
"""Largest standard error of log relevance of an item that is ranked here, where items have no queries."""

_SHOWN = 8
_POINTS = 1200

Floats = NDArray[np.float64]


class Moves(NamedTuple):
    """Items by row of the relevance table, their click rate and relevance, and their rank by each, from 0 to 1."""

    row: NDArray[np.int64]
    rate: Floats
    relevance: Floats
    by_rate: Floats
    by_relevance: Floats

    @property
    def move(self) -> Floats:
        """Above 0: worth more than clicks say."""
        return np.asarray(self.by_relevance - self.by_rate)


def rank_moves(table: pa.Table, place_known: NDArray[np.bool_] | None = None) -> Moves:
    """Rank the items of the largest component whose place is known, or whose relevance is, where they have none."""
    from scipy.stats import rankdata  # slow to import

    relevance, shown, clicks = (_to_numbers(table, column) for column in ("relevance", "impressions", "clicks"))
    known = np.isfinite(relevance) & (shown > 0)
    if "component" in table.column_names:
        component = table["component"].to_numpy()
        known &= component == np.bincount(component[component >= 0]).argmax()
    if place_known is not None:
        known &= place_known
    elif "log_se" in table.column_names:
        known &= _to_numbers(table, "log_se") <= PRECISE
    row = np.flatnonzero(known)
    rate = clicks[row] / shown[row]
    ranks = [(rankdata(values) - 0.5) / max(len(row), 1) for values in (rate, relevance[row])]
    return Moves(row, rate, relevance[row], ranks[0], ranks[1])


def moves_section(fit: Fit, roles: Roles) -> Section:
    """The items that a ranking by click rate puts most out of place."""
    title, item = "What clicks over- and under-rate", roles.item
    place_known = find_known(fit, roles.query)
    found = rank_moves(fit.relevance, place_known)
    if len(found.row) < 2:
        why = "No two items have a place in their query that is known."
        return Section("moves", title, why, [])
    order = np.argsort(-found.move, kind="stable")
    under, over = order[:_SHOWN], order[::-1][:_SHOWN]
    under, over = under[found.move[under] > 0], over[found.move[over] < 0]
    far = float(np.mean(np.abs(found.move) > 0.25))
    items = format_count(len(found.row))
    lead = f"{far:.0%} of {items} well-known items change their rank by a quarter of the list or more"
    lead += f" once the effect of where they were shown is removed (model {fit.model})."
    blocks: list[Block] = [_draw_cloud(fit, found, under, over, item)]
    if len(under) + len(over):
        blocks += [_draw_arrows(fit, found, under, over, item), _tabulate_moves(fit, found, under, over, item)]
    left = fit.relevance.num_rows - len(found.row)
    if left:
        blocks.append(
            Note(
                f"{format_count(left)} of {format_count(fit.relevance.num_rows)} items are left out: they are in "
                "another component, or their clicks say less of their place than they leave open."
            )
        )
    return Section("moves", title, lead, blocks)


def _draw_cloud(fit: Fit, found: Moves, under: Any, over: Any, item: tuple[str, ...]) -> Figure:
    step = max(1, len(found.row) // _POINTS)
    some = np.argsort(found.rate, kind="stable")[::step]
    kind = {int(at): "under-rated" for at in under} | {int(at): "over-rated" for at in over}
    rest = [int(at) for at in some if int(at) not in kind]
    points = [
        {
            "x": round(float(found.rate[at]), 5),
            "y": round(float(found.relevance[at]), 5),
            "kind": kind.get(at, "others"),
        }
        | {"name": _name_item(fit, found, at, item)}
        for at in [*rest, *kind]
    ]
    top = float(found.rate.max())
    domain = ["over-rated", "under-rated", "others"]
    scale = {"domain": domain, "range": [SERIES[1], SERIES[0], FAINT]}
    place = {"x": number_field("x", "click rate", axis={"format": "%"}), "y": number_field("y", "relevance")}
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": 0.0, "y": 0.0}, {"x": top, "y": top}]},
            "mark": {"type": "line", "color": INK, "strokeDash": [4, 4], "strokeWidth": 1},
            "encoding": place,
        },
        {
            "data": {"values": points},
            "mark": {"type": "circle", "size": 45},
            "encoding": {
                **place,
                "color": name_field("kind", scale=scale, legend={"symbolOpacity": 1}),
                "opacity": {"condition": {"test": "datum.kind === 'others'", "value": 0.35}, "value": 1},
                "tooltip": tooltip(name="item", x="click rate", y="relevance"),
            },
        },
    ]
    part = (
        f" {format_count(len(points))} of {format_count(len(found.row))} are drawn."
        if len(points) < len(found.row)
        else ""
    )
    return Figure(
        "relevance",
        "Relevance against click rate",
        frame(320, layers),
        "Each dot is an item: how often it was clicked, and how relevant it is with the effect of its place removed."
        f"{part}",
        "On the dashed line are items always shown where results are seen best. The higher above it, the more their "
        "place has hidden them. Those whose rank changes most are coloured.",
    )


def _draw_arrows(fit: Fit, found: Moves, under: Any, over: Any, item: tuple[str, ...]) -> Figure:
    bars = [
        {
            "label": _name_item(fit, found, int(at), item),
            "from": float(found.by_rate[at]),
            "to": float(found.by_relevance[at]),
            "kind": kind,
            "text": f"{found.by_rate[at]:.0%} by clicks, {found.by_relevance[at]:.0%} by relevance",
        }
        for kind, chosen in (("under-rated", under), ("over-rated", over))
        for at in chosen
    ]
    along = number_field(
        "from", "rank among all items (100%: the best)", scale={"domain": [0, 1]}, axis={"format": "%"}
    )
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK, "labelLimit": 150})
    colour = name_field("kind", scale={"domain": ["over-rated", "under-rated"], "range": [SERIES[1], ACCENT]})
    words = tooltip(label="item", text="rank")
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": along, "x2": {"field": "to"}, "color": colour}},
        {
            "mark": {"type": "point", "size": 55, "filled": False, "fill": "var(--paper, white)", "opacity": 1},
            "encoding": {"x": along, "color": colour, "tooltip": words},
        },
        {
            "mark": {"type": "circle", "size": 90, "opacity": 1},
            "encoding": {"x": {**along, "field": "to"}, "color": colour, "tooltip": words},
        },
    ]
    return Figure(
        "moves",
        "Items that move most",
        chart(separate_labels(bars), 26 * len(bars) + 20, layers, encoding={"y": down}),
        "From the rank by click rate (hollow) to the rank by relevance (full), among the items above.",
        "Under-rated items were shown where few look; over-rated ones owe their clicks to their place.",
    )


def _tabulate_moves(fit: Fit, found: Moves, under: Any, over: Any, item: tuple[str, ...]) -> Grid:
    shown, clicks = (_to_numbers(fit.relevance, column) for column in ("impressions", "clicks"))
    errors = _to_numbers(fit.relevance, "log_se") if "log_se" in fit.relevance.column_names else None
    lines = []
    for kind, chosen in (("under-rated", under), ("over-rated", over)):
        for at in chosen.tolist():
            row = int(found.row[at])
            value = float(found.relevance[at])
            spread = ""
            if errors is not None:
                low, high = (min(value * np.exp(sign * 2 * errors[row]), 1.0) for sign in (-1, 1))
                spread = f" ({low:.3f} to {high:.3f})"
            figures = (
                format_count(int(shown[row])),
                format_count(int(clicks[row])),
                f"{found.rate[at]:.1%}",
                f"{min(value, 1.0):.3f}{spread}",
            )
            lines.append((kind, _name_item(fit, found, at, item), *figures, f"{found.move[at]:+.0%}"))
    return Grid(
        ("", "item", "impressions", "clicks", "click rate", "relevance", "move"),
        lines,
        numeric=("impressions", "clicks", "click rate", "relevance", "move"),
        caption="Move: by how much of the list its rank changes.",
    )


def _name_item(fit: Fit, found: Moves, at: int, item: tuple[str, ...]) -> str:
    row = to_rows(fit.relevance.select(list(item)), [int(found.row[at])])[0]
    return " · ".join(to_one_line(value, 24) for value in row.values())


def _to_numbers(table: pa.Table, column: str) -> Floats:
    return np.asarray(table[column].to_numpy(), np.float64)

"""The identifiability graph as a chart that answers a click."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from elute._util.text import format_count, to_one_line
from elute.cells.factors import describe, is_position, to_rows
from elute.checking.check import Check
from elute.repair.plan import Plan
from elute.reporting.charts.graph import Graph, build_graph
from elute.reporting.charts.layout import place_nodes
from elute.reporting.charts.looks import FAINT, INK, SERIES, Rows, frame, name_field, number_field
from elute.reporting.parts import Figure, Spec

_LABELLED = 60
_EXAMPLES = 4
_NEIGHBOURS = 5
_PLANNED = 200
_COLOURED = len(SERIES)
_FEW, _INSIDE = 40, 3

_PICKED = "!pick.id || indexof(pick.id, datum.a) >= 0 || indexof(pick.id, datum.b) >= 0"
"""Whether a link is to be seen: nothing is picked, or one of its ends."""


def draw_graph(check: Check, plan: Plan | None) -> Figure:
    """The graph of a log, with the links that a plan would add."""
    drawn = build_graph(check.counts, check.found)
    at = place_nodes(drawn.nodes, drawn.links)
    names = _name_nodes(check, drawn)
    nodes = _draw_nodes(check, drawn, at, names)
    most = max(int(drawn.links.items.max(initial=1)), 2)
    links = [
        {"a": a, "b": b, **_place_ends(at, a, b), "thick": round(float(0.7 + 2.8 * np.log(items) / np.log(most)), 2)}
        for a, b, items in zip(*(part.tolist() for part in drawn.links), strict=True)
    ]
    planned = [{"a": a, "b": b, **_place_ends(at, a, b), "thick": 2.0} for a, b in _list_planned(check, drawn, plan)]
    return Figure(
        "graph",
        "The identifiability graph",
        _build_spec(nodes, links, planned, at),
        _explain_content(check, drawn, bool(planned)),
        _explain_reading(drawn),
        _list_details(check, drawn, names),
    )


def _list_planned(check: Check, drawn: Graph, plan: Plan | None) -> list[tuple[int, int]]:
    """Pairs of nodes that the plan links; within a node there is nothing to draw."""
    if plan is None:
        return []
    pairs = np.sort(drawn.node[plan.pairs_of(check.log.survey.factors)], axis=1)
    return [(a, b) for a, b in np.unique(pairs, axis=0).tolist() if a != b][:_PLANNED]


def _place_ends(at: NDArray[np.float64], a: int, b: int) -> dict[str, float]:
    return dict(zip(("x", "y", "x2", "y2"), np.round([*at[a], *at[b]], 3).tolist(), strict=True))


def _draw_nodes(check: Check, drawn: Graph, at: NDArray[np.float64], names: list[str]) -> Rows:
    """`size` in square pixels; by impressions where nodes are groups or factors alike."""
    shown = np.bincount(drawn.node, weights=check.log.survey.impressions)
    size = 120 + 900 * np.sqrt(shown / shown.max()) * min(1.0, 30 / drawn.nodes)
    labels = _label_nodes(check, drawn)
    return [
        {
            "id": node,
            "x": round(float(at[node, 0]), 3),
            "y": round(float(at[node, 1]), 3),
            "size": round(float(size[node]), 1),
            "name": names[node],
            "label": labels[node],
            "component": _name_component(int(drawn.component[node])),
        }
        for node in range(drawn.nodes)
    ]


def _name_component(part: int) -> str:
    return f"component {part + 1}" if 0 <= part < _COLOURED - 1 else "others"


def _label_nodes(check: Check, drawn: Graph) -> list[str]:
    """What stands on a node: its values, or how many factors it has."""
    if drawn.nodes > _LABELLED:
        return [""] * drawn.nodes
    if drawn.is_grouped:
        return [format_count(int(n)) for n in np.bincount(drawn.node)]
    return [
        "·".join(to_one_line(value, 12) for value in row.values()) for row in _read_factors(check, range(drawn.nodes))
    ]


def _name_nodes(check: Check, drawn: Graph) -> list[str]:
    """A node in words."""
    if not drawn.is_grouped:
        return [to_one_line(describe(row), 80) for row in _read_factors(check, range(drawn.nodes))]
    out = []
    for node in range(drawn.nodes):
        members = np.flatnonzero(drawn.node == node)
        if len(members) == 1:
            out.append(to_one_line(describe(_read_factors(check, members)[0]), 80))
        elif drawn.component[node] < 0:
            out.append(f"{format_count(len(members))} factors of the smaller components")
        else:
            out.append(f"{format_count(len(members))} factors{_describe_span(check, members)}")
    return out


def _describe_span(check: Check, members: NDArray[np.int64]) -> str:
    """What a group's factors have in common: the range of positions, and columns with one value."""
    words = []
    table = check.log.survey.factors.take(members)
    for column in table.column_names:
        values = table[column].unique().to_pylist()
        if len(values) == 1:
            words.append(f"{column} {to_one_line(values[0])}")
        elif is_position(table, column):
            words.append(f"{column} {min(values):g} to {max(values):g}")
    return f" with {', '.join(words)}" if words else ""


def _list_details(check: Check, drawn: Graph, names: list[str]) -> dict[str, list[tuple[str, str]]]:
    """What a click on a node tells."""
    survey = check.log.survey
    shown, clicked = (np.bincount(drawn.node, weights=values) for values in (survey.impressions, survey.clicks))
    near: list[list[tuple[int, int]]] = [[] for _ in range(drawn.nodes)]
    for a, b, items in zip(*(part.tolist() for part in drawn.links), strict=True):
        near[a].append((items, b))
        near[b].append((items, a))
    out = {}
    for node in range(drawn.nodes):
        members = np.flatnonzero(drawn.node == node)
        best = sorted(near[node], key=lambda link: (-link[0], link[1]))[:_NEIGHBOURS]
        part = int(drawn.component[node])
        facts = [
            ("", names[node]),
            ("component", f"{part + 1} of {format_count(check.components)}" if part >= 0 else "several small ones"),
            ("impressions", format_count(int(shown[node]))),
        ]
        if check.log.roles.click is not None:
            facts.append(("clicks", f"{format_count(int(clicked[node]))} ({clicked[node] / shown[node]:.1%})"))
        if drawn.is_grouped and len(members) > 1:
            some = [to_one_line(describe(row)) for row in _read_factors(check, members[:_EXAMPLES])]
            facts.append(("for instance", "; ".join(some)))
        linked = [
            f"{names[other]} ({format_count(items)} {'item' if items == 1 else 'items'})" for items, other in best
        ]
        facts.append(("shares most items with", "; ".join(linked) if linked else "none: no item links it to another"))
        out[str(node)] = facts
    return out


def _read_factors(check: Check, codes: Iterable[int]) -> list[dict[str, object]]:
    return to_rows(check.log.survey.factors, codes)


def _explain_content(check: Check, drawn: Graph, planned: bool) -> str:
    if drawn.is_grouped:
        first = (
            f"{format_count(len(drawn.node))} factors in {format_count(drawn.nodes)} groups, each a dot with the "
            "number of its factors; factors of one group are connected among themselves. A line joins two groups that "
            "share items."
        )
    else:
        first = (
            "Each dot is a factor, such as a position: larger with more impressions. A line joins two factors under "
            "which one item was shown: thicker and shorter with more such items."
        )
    if drawn.all_links > len(drawn.links.a):
        first += (
            f" The {format_count(len(drawn.links.a))} strongest of {format_count(drawn.all_links)} lines are drawn."
        )
    return first + (" Dashed: what the repair plan would join." if planned else "")


def _explain_reading(drawn: Graph) -> str:
    what = "group" if drawn.is_grouped else "factor"
    return (
        "If all dots are connected, clicks fix one scale for all items. Each colour is a component: no item links two "
        f"components, so relevance cannot be compared between them. Click on a dot to see that {what} and its links."
    )


def _build_spec(nodes: Rows, links: Rows, planned: Rows, at: NDArray[np.float64]) -> Spec:
    parts = list(dict.fromkeys(node["component"] for node in nodes))
    colours = [FAINT if part == "others" else SERIES[number] for number, part in enumerate(sorted(parts))]
    low, high = at.min(axis=0) - 0.4, at.max(axis=0) + 0.4
    across = number_field("x", None, scale={"domain": [float(low[0]), float(high[0])], "nice": False}, axis=None)
    up = number_field("y", None, scale={"domain": [float(low[1]), float(high[1])], "nice": False}, axis=None)
    line = {"x": across, "y": up, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    thick = {"field": "thick", "type": "quantitative", "scale": None, "legend": None}
    seen = {"condition": {"test": _PICKED, "value": 0.75 if len(links) <= _FEW else 0.45}, "value": 0.06}
    inside = all(len(node["label"]) <= _INSIDE for node in nodes) and len(nodes) <= _FEW
    text = {"color": "var(--paper, white)"} if inside else {"color": INK, "dy": 23, "fontSize": 10}
    scale = {"domain": sorted(parts), "range": colours}
    colour = name_field("component", scale=scale, legend=None if len(parts) == 1 else {"symbolType": "circle"})
    picked = {"param": "pick", "empty": False}
    pick = {"name": "pick", "select": {"type": "point", "fields": ["id"], "on": "click", "nearest": False}}
    layers: list[Spec] = [
        {
            "data": {"values": list(links)},
            "mark": {"type": "rule", "color": FAINT, "strokeCap": "round"},
            "encoding": {**line, "strokeWidth": thick, "opacity": seen},
        },
        {
            "data": {"values": list(planned)},
            "mark": {"type": "rule", "color": INK, "strokeDash": [5, 4]},
            "encoding": {**line, "strokeWidth": thick, "opacity": {**seen, "value": 0.2}},
        },
        {
            "data": {"values": list(nodes)},
            "params": [pick],
            "mark": {"type": "circle", "opacity": 1, "cursor": "pointer", "stroke": "var(--paper, white)"},
            "encoding": {
                "x": across,
                "y": up,
                "size": {"field": "size", "type": "quantitative", "scale": None, "legend": None},
                "color": colour,
                "stroke": {"condition": {**picked, "value": INK}, "value": "var(--paper, white)"},
                "strokeWidth": {"condition": {**picked, "value": 3}, "value": 1.5},
                "tooltip": {"field": "name", "type": "nominal"},
            },
        },
        {
            "data": {"values": list(nodes)},
            "mark": {"type": "text", "fontSize": 11, "tooltip": None, **text},
            "encoding": {"x": across, "y": up, "text": {"field": "label", "type": "nominal"}},
        },
    ]
    if not planned:
        del layers[1]
    return frame(int(np.clip(90 * (high[1] - low[1]), 260, 460)), layers)

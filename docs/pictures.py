"""Draws the pictures of the explanation pages: `python docs/pictures.py` writes docs/img/*.svg.

Schematic ones are written as SVG; those with figures in them are computed by elute and drawn from Vega-Lite specs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

import elute
from elute.reporting.charts.render import render_svg
from elute.reporting.charts.specs import lines
from elute.reporting.sections.effects import draw_effects
from elute.simulation import layouts
from elute.simulation.grades import PROPENSITIES

IMG = Path(__file__).parent / "img"
BLUE, ORANGE, GREEN, GREY = "#3465a4", "#b35c1e", "#2a7f62", "#8c959f"
STYLE = """<style>
text { font-family: ui-sans-serif, system-ui, "DejaVu Sans", sans-serif; fill: #24292f; font-size: 14px }
.n { fill: #fff; font-size: 15px; font-weight: 600; text-anchor: middle }
.l { font-style: italic; text-anchor: middle; fill: #57606a }
.t { font-size: 16px; font-weight: 600 }
.s { font-size: 13px; fill: #57606a }
.c { text-anchor: middle }
</style>"""


def picture(name: str, width: int, height: int, label: str, parts: Iterable[str]) -> None:
    """Write an SVG with a frame."""
    frame = f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10" fill="#fff" stroke="#d0d7de"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
    (IMG / name).write_text("\n".join([head, STYLE, frame, *parts, "</svg>"]) + "\n", encoding="utf-8")


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def node(x: float, y: float, name: object, colour: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="16" fill="{colour}"/>' + text(x, y + 5, str(name), "n")


def edge(x1: float, y1: float, x2: float, y2: float, colour: str = GREY, more: str = "") -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{colour}" stroke-width="2.5" fill="none" {more}/>'


def from_log_to_graph() -> None:
    """Five items, six positions: which cells there are, and what they link."""
    shown = {"a": (1, 2), "b": (2, 3), "c": (3,), "d": (4, 5), "e": (5, 6)}
    places = {1: (470, 80), 2: (540, 150), 3: (470, 220), 4: (640, 80), 5: (710, 150), 6: (640, 220)}
    parts = [text(30, 36, "the log: where each item was shown", "t"), text(430, 36, "its graph", "t")]
    parts += [text(110 + 44 * p, 70, str(p), "c s") for p in places] + [text(30, 70, "position", "s")]
    for row, (item, at) in enumerate(shown.items()):
        y = 84 + 34 * row
        parts.append(text(30, y + 20, f'item <tspan font-style="italic">{item}</tspan>'))
        for position in places:
            fill = (BLUE if position < 4 else ORANGE) if position in at else "#f3f4f6"
            parts.append(f'<rect x="{92 + 44 * position}" y="{y}" width="36" height="28" rx="4" fill="{fill}"/>')
    for item, at in shown.items():
        if len(at) == 2:
            (x1, y1), (x2, y2) = places[at[0]], places[at[1]]
            parts.append(edge(x1, y1, x2, y2))
            parts.append(text((x1 + x2) / 2 + (-16 if y2 > 180 else 16), (y1 + y2) / 2 - 8, item, "l"))
    parts += [node(x, y, position, BLUE if position < 4 else ORANGE) for position, (x, y) in places.items()]
    parts.append(text(30, 284, "item c was shown at one position only: it links nothing.", "s"))
    parts.append(text(430, 284, "two pieces: no ratio across them is known.", "s"))
    label = "A table of five items and six positions, and the graph of positions that it makes: two pieces of three."
    picture("from-log-to-graph.svg", 790, 304, label, parts)


def two_repairs() -> None:
    """A merge and a swap between two blocks."""
    parts = []
    for left, title in ((30, "merge: 4 and 5 share one propensity"), (420, "swap: show item a at 5, too")):
        top = [(left + 30 + 90 * k, 100) for k in range(4)]
        low = [(left + 30 + 90 * k, 190) for k in range(4)]
        parts.append(text(left, 38, title, "t"))
        parts += [edge(*one, *other) for row in (top, low) for one, other in pairwise(row)]
        if left == 30:
            parts.append(edge(*top[3], *low[0], GREEN, 'stroke-dasharray="7 5"') + text(left + 176, 158, "=", "t"))
        else:
            parts.append(edge(*top[0], *low[0], GREEN) + text(left + 14, 150, "a", "l"))
        parts += [node(*at, k + 1, BLUE) for k, at in enumerate(top)]
        parts += [node(*at, k + 5, ORANGE) for k, at in enumerate(low)]
    parts.append(text(30, 240, "no traffic; wrong by as much as the two differ", "s"))
    parts.append(text(420, 240, "a few impressions; no error of its own", "s"))
    label = "Two blocks of positions, joined by a shared propensity of positions 4 and 5, or by an item shown in both."
    picture("two-repairs.svg", 790, 262, label, parts)


def circuit() -> None:
    """Positions as nodes, items as resistors."""

    def resistor(x1: float, x2: float, y: float, name: str) -> str:
        step = (x2 - x1 - 40) / 8
        zigzag = "".join(f"L{x1 + 20 + step * (k + 0.5):g} {y + (8 if k % 2 else -8):g}" for k in range(8))
        path = f"M{x1:g} {y:g}L{x1 + 20:g} {y:g}{zigzag}L{x2 - 20:g} {y:g}L{x2:g} {y:g}"
        drawn = f'<path d="{path}" fill="none" stroke="{GREY}" stroke-width="2.2"/>'
        return drawn + text((x1 + x2) / 2, y - 16, name, "l")

    xs = (70, 270, 470, 720)
    parts = [text(30, 36, "items are resistors between the positions that they were shown at", "t")]
    for y, name in ((92, "a"), (132, "b"), (172, "c")):
        parts.append(resistor(xs[0], xs[1], y, name))
    parts += [edge(x, 92, x, 172) for x in xs[:2]]
    parts += [resistor(xs[1], xs[2], 112, "d"), resistor(xs[1], xs[2], 152, "e")]
    parts += [edge(x, 112, x, 152) for x in xs[1:3]]
    parts.append(resistor(xs[2], xs[3], 132, "f: the only one"))
    parts += [node(x, 132, k + 1, GREEN) for k, x in enumerate(xs)]
    parts.append(text(30, 214, "three side by side: a small error", "s"))
    parts.append(text(520, 214, "one alone: a weak link, all must pass it", "s"))
    parts.append(text(30, 238, "error of log o(1) − log o(4): the resistance from 1 to 4, links in a row add up", "s"))
    label = "Four positions in a chain: three items link 1 and 2, two link 2 and 3, a single one links 3 and 4."
    picture("circuit.svg", 790, 258, label, parts)


def flow() -> None:
    """From a log to a report: who reads what."""
    looks = {"data": ("#f6f8fa", GREY), "engine": ("#eaf1fb", BLUE), "verb": ("#e9f5f0", GREEN)}

    def box(x: int, y: int, width: int, kind: str, name: str, *lines: str) -> list[str]:
        fill, stroke = looks[kind]
        place = f'x="{x}" y="{y}" width="{width}" height="{38 + 18 * len(lines)}" rx="6"'
        drawn = [f'<rect {place} fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>']
        drawn.append(text(x + width / 2, y + 25, name, "c t"))
        return drawn + [text(x + width / 2, y + 46 + 18 * k, line, "c s") for k, line in enumerate(lines)]

    def arrow(path: str) -> str:
        return f'<path d="{path}" stroke="{GREY}" stroke-width="1.8" fill="none" marker-end="url(#to)"/>'

    marker = f'refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="{GREY}"/>'
    parts = [f'<defs><marker id="to" viewBox="0 0 8 8" {marker}</marker></defs>']
    parts += box(30, 30, 210, "data", "log", "a row for every result shown:", "files, tables, databases")
    parts += box(310, 30, 210, "engine", "engine", "DuckDB, partitioned, or Spark:", "the only part that sees rows")
    parts += box(590, 30, 210, "data", "cells", "item × factor:", "impressions and clicks")
    parts += [arrow("M240 67H308"), arrow("M520 67H588")]
    parts.append(text(30, 126, "convert and simulate make logs;", "s"))
    parts.append(text(30, 144, "count keeps cells, in the log's place", "s"))
    parts += box(30, 200, 170, "verb", "check", "recoverable? for which", "queries? how precisely?")
    parts += box(230, 200, 170, "verb", "repair", "what to merge,", "what to swap")
    parts += box(430, 200, 170, "verb", "fit", "propensities, relevance,", "standard errors")
    parts += box(630, 200, 170, "verb", "judge", "judgments and clicks", "for search stacks")
    parts.append(f'<path d="M695 104V168H115" stroke="{GREY}" stroke-width="1.8" fill="none"/>')
    parts += [arrow(f"M{x} 168V198") for x in (115, 315, 515)]
    parts += [arrow(f"M{x} 237H{x + 28}") for x in (200, 400, 600)]
    parts += box(30, 332, 370, "verb", "report", "check, plan, fits and audit on one page")
    parts += box(430, 332, 170, "verb", "audit", "is the fit debiased?")
    parts += [arrow(f"M{x} 274V330") for x in (115, 315, 540)]
    parts += [arrow("M470 274C470 306 370 298 370 330"), arrow("M430 360H402")]
    label = "A log is read once by an engine into cells; check, repair and fit work on cells, audit and judge on a fit."
    picture("flow.svg", 830, 414, label, parts)


def two_scales() -> None:
    """Propensities that explain the clicks of two blocks equally well."""
    rows = []
    for factor, name in ((1.0, "the truth"), (0.5, "lower block halved"), (2.0, "lower block doubled")):
        for position, propensity in enumerate(PROPENSITIES, start=1):
            shifted = propensity * (factor if position > 4 else 1.0)
            rows.append({"position": position, "propensity": shifted, "curve": name, "block": position > 4})
    spec = lines(rows, x="position", y="propensity", series="curve", domain=(0, 0.75))
    spec["encoding"]["detail"] = {"field": "block"}  # no line across: nothing is known there
    write("two-scales.svg", spec)


def three_users() -> None:
    """Click probability against relevance for three kinds of users."""
    relevance = np.linspace(0, 1, 41)
    trust = {1: (0.55, 0.40), 3: (0.45, 0.15), 6: (0.25, 0.03)}
    panels = {
        "position bias": {f"position {k}": PROPENSITIES[k - 1] * relevance for k in trust},
        "trust bias": {f"position {k}": a * relevance + b for k, (a, b) in trust.items()},
        "a choice": {f"others sum to {o:g}": relevance / (relevance + o) for o in (0.01, 0.1, 1)},
    }
    specs = []
    for title, curves in panels.items():
        rows = [
            {"relevance": float(x), "click probability": float(y), "at": name}
            for name, curve in curves.items()
            for x, y in zip(relevance, curve, strict=True)
        ]
        spec = lines(rows, x="relevance", y="click probability", series="at", domain=(0, 1), size=(190, 200))
        for layer in spec["layer"]:
            layer["mark"] = {"type": "line"}
        spec["encoding"]["color"]["legend"] |= {"orient": "bottom", "direction": "vertical"}
        look = {key: spec.pop(key) for key in ("$schema", "background", "config")}
        specs.append(spec | {"title": title})
    write("three-users.svg", {**look, "hconcat": specs, "resolve": {"scale": {"color": "independent"}}})


SHOWN, LOGS = 1000, 200
SE = "standard error of log propensity"


def resistance() -> None:
    """A chain of positions: the formula, the spread of simulated logs, and what one wire does."""
    rng = np.random.default_rng(0)
    chain = [(f"{k}-{copy}", p) for k in range(1, 10) for copy in range(4) for p in (k, k + 1)]
    rows = []
    worlds = {
        "neighbours only": chain,
        "one more item at 9 and 10": [*chain, ("more", 9), ("more", 10)],
        "one more item at 1 and 10": [*chain, ("wire", 1), ("wire", 10)],
    }
    for name, cells in worlds.items():
        item, position = (np.array(column) for column in zip(*cells, strict=True))
        probability = 0.7 * np.array(PROPENSITIES)[position - 1]
        expected = certified(item, position, SHOWN * probability * 1000, SHOWN * 1000) * np.sqrt(1000)
        spread = [drawn(item, position, rng.binomial(SHOWN, probability)) for _ in range(LOGS)]
        for at in range(1, 11):
            rows.append({"position": at, SE: float(expected[at - 1]), "log": name})
            rows.append({"position": at, "simulated": float(np.std(spread, axis=0)[at - 1]), "log": name})
    known = [row for row in rows if SE in row]
    spec = lines(known, x="position", y=SE, series="log", domain=(0, 0.22))
    spec["layer"][-1]["mark"] = {"type": "line"}
    points = {"field": "simulated", "type": "quantitative"}
    dots = {"mark": {"type": "point", "filled": True, "size": 45}, "encoding": {"y": points}}
    dots["data"] = {"values": [row for row in rows if "simulated" in row]}
    spec["layer"].append(dots)
    write("resistance-by-position.svg", spec)


def counts(item: np.ndarray, position: np.ndarray, clicks: np.ndarray, shown: int) -> elute.Counts:
    table = pa.table(
        {"doc_id": item, "position": position, "click": np.rint(clicks).astype(int), "n": [shown] * len(item)}
    )
    return elute.read_log(table, item="doc_id", impressions="n").counts()


def certified(item: np.ndarray, position: np.ndarray, clicks: np.ndarray, shown: int) -> np.ndarray:
    """Standard errors by the formula, at the expected clicks."""
    return elute.certify(counts(item, position, clicks, shown)).log_se


def drawn(item: np.ndarray, position: np.ndarray, clicks: np.ndarray) -> np.ndarray:
    """Log propensities of a fit, against position 1."""
    table = elute.PBM().fit(counts(item, position, clicks, SHOWN)).propensities_.sort_by("position")
    logs = np.log(table["propensity"].to_numpy())
    return logs - logs[0]


def effects() -> None:
    """Of the demo's log with three bias columns, beside the truth."""
    table = elute.fit(layouts.simulate_layouts(20_000, 120, 7), bias="position + device + layout").effects
    if table is None:
        raise LookupError("effects")
    truth: dict[str, dict[object, float]] = {
        "position": dict(zip(range(1, 11), layouts.POSITION_EFFECTS, strict=True)),
        "device": dict(zip(layouts.DEVICES, layouts.DEVICE_EFFECTS, strict=True)),
        "layout": dict(zip(layouts.LAYOUTS, layouts.LAYOUT_EFFECTS, strict=True)),
    }
    rows = table.to_pylist()
    home = {row["term"]: row[row["term"]] for row in rows if row["reference"]}
    real = [
        {"level": f"{term} {row[term]}", "times": float(np.exp(truth[term][row[term]] - truth[term][home[term]]))}
        for row in rows
        for term in (row["term"],)
    ]
    spec = draw_effects(table, "effects").spec
    place = {"y": {"field": "level", "type": "nominal", "sort": None}, "x": {"field": "times", "type": "quantitative"}}
    cross = {"type": "point", "shape": "cross", "size": 60, "color": "#24292f"}
    spec["layer"].append({"mark": cross, "data": {"values": real}, "encoding": place})
    write("effects.svg", spec)


def write(name: str, spec: dict[str, object]) -> None:
    (IMG / name).write_text(render_svg(spec), encoding="utf-8")


if __name__ == "__main__":
    from_log_to_graph()
    two_repairs()
    circuit()
    flow()
    two_scales()
    three_users()
    resistance()
    effects()

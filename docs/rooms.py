"""Draws how the rooms of elute import each other, in layers: `python docs/rooms.py [SOURCE OUT.svg]`.

Without arguments it draws src/elute into docs/img/rooms-after.svg. A room is a package at the top level, or a module
that lies there alone. All imports count: also those within functions and those for type checkers only. An arrow is
left out where a way over other rooms leads to the same room. tests/test_architecture.py uses what reads the imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from layers import HEIGHT, Graph, Layout

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PICTURE = ROOT / "src" / "elute", ROOT / "docs" / "img" / "rooms-after.svg"


@cache
def modules(source: Path) -> dict[str, Path]:
    """The files of a package by dotted name; a package's `__init__.py` has the package's name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = (source.name, *path.relative_to(source).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(source: Path) -> Graph:
    """For every module the dotted names of the modules that it imports, wherever they come from."""
    known = modules(source)
    return {module: set(_imported(module, path, known)) for module, path in known.items()}


def _imported(module: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{home}.{alias.name}"
                yield inner if inner in known else home


def rooms(graph: Graph, package: str) -> Graph:
    """Who imports whom among what lies directly in `package`. What its `__init__.py` imports counts for the package
    itself, so that nothing in it may import the package in turn."""
    depth = package.count(".") + 2

    def room(name: str) -> str:
        return ".".join(name.split(".")[:depth])

    inside = {name: targets for name, targets in graph.items() if _within(name, package)}
    found: Graph = {room(name): set() for name in inside}
    for name, targets in inside.items():
        found[room(name)] |= {room(target) for target in targets if _within(target, package)}
    return {name: targets - {name} for name, targets in found.items()}


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def reachable(graph: Graph, start: str) -> set[str]:
    """Everything that a node leads to; the node itself only where it lies on a circle."""
    found: set[str] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph.get(name, ())
    return found


def circles(graph: Graph) -> list[list[str]]:
    """Groups of nodes that lead to each other."""
    ahead = {name: reachable(graph, name) for name in graph}
    on_circle = sorted(name for name in graph if name in ahead[name])
    groups = {frozenset(b for b in on_circle if b in ahead[a] and a in ahead[b]) for a in on_circle}
    return sorted(sorted(group) for group in groups)


MARGIN, HEAD = 30.0, 92.0
"""Pixels around all boxes, and above them."""

BLUE, ORANGE, GREY = "#3465a4", "#b35c1e", "#8c959f"
FOLDER, FILE = ("#eaf1fb", BLUE), ("#f6f8fa", GREY)
"""Ground and outline of boxes."""

STYLE = f"""<style>
text {{ font-family: ui-sans-serif, system-ui, "DejaVu Sans", sans-serif; fill: #24292f; font-size: 14px }}
.n {{ font-size: 15px; font-weight: 600; text-anchor: middle }}
.s {{ font-size: 12.5px; fill: #57606a; text-anchor: middle }}
.w {{ font-size: 12.5px; fill: {ORANGE}; font-weight: 600; text-anchor: middle }}
.k {{ font-size: 13px; fill: #57606a }}
.t {{ font-size: 16px; font-weight: 600 }}
.e {{ stroke: {GREY}; stroke-width: 1.5; fill: none; marker-end: url(#to) }}
.back {{ stroke: {ORANGE}; stroke-width: 2 }}
</style>
<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>"""


def without_circles(graph: Graph) -> tuple[Graph, list[tuple[str, str]]]:
    """The graph less one arrow of every circle, and these arrows."""
    left, back = {name: set(targets) for name, targets in graph.items()}, []
    while found := circles(left):
        group = set(found[0])
        start = min(group, key=lambda name: (sum(name in left[other] for other in group), name))
        arrow = next((other, start) for other in sorted(group) if start in left[other])
        left[arrow[0]].discard(start)
        back.append(arrow)
    return left, back


def reduced(graph: Graph) -> Graph:
    """Without arrows that a longer way replaces."""
    ahead = {name: reachable(graph, name) for name in graph}
    return {a: {b for b in targets if not any(b in ahead[c] for c in targets - {b})} for a, targets in graph.items()}


def draw(source: Path) -> str:
    """The picture of a package."""
    package, every = source.name, imports(source)
    every.pop(f"{package}.__main__", None)  # starts the command line, and is nobody's room
    graph = rooms(every, package)
    arrows, back = without_circles(graph)
    drawn = reduced(arrows)
    notes = {name: _notes(name, package, every) for name in graph}
    widths = {name: max(74.0, 8.6 * len(_short(name)) + 26, 6.9 * max(map(len, notes[name])) + 20) for name in graph}
    layout = Layout(drawn, widths)
    files = sum(modules(source)[name].name != "__init__.py" for name in every)
    title = f"{len(graph) - 1} rooms, {files} files, {len(layout.layers)} layers"
    total, shown = (sum(map(len, part.values())) for part in (graph, drawn))
    said = (
        f"Arrows point to what is imported: {shown + len(back)} of {total}, without those that a longer way replaces."
    )
    parts = [f'<text x="0" y="-54" class="t">{title}</text>', f'<text x="0" y="-32" class="k">{said}</text>']
    parts += [f'<path class="e" d="{layout.curve(*arrow)}"/>' for arrow in layout.ways]
    parts += [f'<path class="e back" d="{_upwards(layout, *arrow)}"/>' for arrow in back]
    for name in sorted(graph):
        parts += _box(_short(name), layout.x[name], layout.y[name], widths[name], notes[name])
    parts += _legend(layout.height + 40, any(len(lines) > 1 for lines in notes.values()))
    width, height = max(660.0, layout.width + 2 * MARGIN), HEAD + layout.height + 66
    label = f"The rooms of {package}: {title}. An arrow points to what is imported."
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{label}"'
    frame = (
        f'<rect x="1" y="1" width="{width - 2:.0f}" height="{height - 2:.0f}" rx="10" fill="#fff" stroke="#d0d7de"/>'
    )
    start = f'<g transform="translate({MARGIN:g} {HEAD:g})">'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, STYLE, frame, start, *parts, "</g>", "</svg>"]) + "\n"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _notes(name: str, package: str, every: Graph) -> list[str]:
    """What a box says below its name: its size, and circles of its files."""
    if name == package:
        return ["the public names"]
    packages = {other.rpartition(".")[0] for other in every}
    files = sum(_within(other, name) and other not in packages for other in every)
    folders = sum(_within(other, name) and other != name for other in packages)
    size = f"{files} file{'s' if files != 1 else ''}"
    if folders:
        size += f", {folders} folder{'s' if folders > 1 else ''}"
    inside = {other: targets for other, targets in every.items() if _within(other, name)}
    return [size, *(f"circle of {len(group)} files" for group in circles(inside))]


def _upwards(layout: Layout, name: str, target: str) -> str:
    """The path of an arrow that closes a circle of rooms."""
    x1, y1, x2, y2 = layout.x[name], layout.y[name], layout.x[target], layout.y[target] + HEIGHT
    return f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 - 60:.0f} {x2:.0f} {y2 + 60:.0f} {x2:.0f} {y2:.0f}"


def _box(name: str, x: float, y: float, width: float, notes: list[str]) -> list[str]:
    fill, line = FILE if notes[0] == "1 file" else FOLDER
    line = ORANGE if len(notes) > 1 else line
    tall = HEIGHT + 16 * (len(notes) - 1)
    box = f'<rect x="{x - width / 2:.0f}" y="{y:g}" width="{width:.0f}" height="{tall:g}" rx="6"'
    parts = [f'{box} fill="{fill}" stroke="{line}" stroke-width="1.5"/>']
    parts.append(f'<text x="{x:.0f}" y="{y + 20:g}" class="n">{name}</text>')
    for k, note in enumerate(notes):
        parts.append(f'<text x="{x:.0f}" y="{y + 37 + 16 * k:g}" class="{"w" if k else "s"}">{note}</text>')
    return parts


def _legend(y: float, circle: bool) -> list[str]:
    kinds = [(*FOLDER, "a folder"), (*FILE, "one file"), ("#fff", ORANGE, "files that import each other in a circle")]
    parts = []
    for k, (fill, line, words) in enumerate(kinds if circle else kinds[:2]):
        parts.append(
            f'<rect x="{110 * k}" y="{y - 12:g}" width="22" height="15" rx="3" fill="{fill}" stroke="{line}"/>'
        )
        parts.append(f'<text x="{110 * k + 30}" y="{y:g}" class="k">{words}</text>')
    return parts


if __name__ == "__main__":
    source, out = map(Path, sys.argv[1:3]) if len(sys.argv) > 2 else (SOURCE, PICTURE)
    out.write_text(draw(source.resolve()), encoding="utf-8")

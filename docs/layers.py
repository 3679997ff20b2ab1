"""Places for the boxes of a layered graph, and ways for its arrows: plain Sugiyama. docs/rooms.py draws with it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise
from math import fsum

Graph = dict[str, set[str]]
Point = tuple[float, float]

GAP, LANE, HEIGHT, STEP = 26.0, 22.0, 46.0, 92.0
"""Pixels: between boxes, between a box and an arrow that passes it, of a box, from layer to layer."""

SWEEPS = 30


def heights(graph: Graph) -> dict[str, int]:
    """The layer of each room: one above the highest of those that it imports."""
    found: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in found:
            found[name] = max((1 + of(target) for target in graph[name]), default=0)
        return found[name]

    for name in graph:
        of(name)
    return found


class Layout:
    """Layers from top to bottom, few crossings, arrows as straight as boxes allow. `x` is the middle of a box, `y` its
    upper edge, both from 0; `width` and `height` are those of all boxes together. The graph has no circles."""

    def __init__(self, graph: Graph, widths: Mapping[str, float]) -> None:
        height = heights(graph)
        top = max(height.values())
        self.layers: list[list[str]] = [[] for _ in range(top + 1)]
        self.up: Graph = {}
        self.down: Graph = {}
        self.widths = dict(widths)
        self.ways: dict[tuple[str, str], list[str]] = {}
        for name in sorted(graph):
            self.layers[top - height[name]].append(name)
        for name in sorted(graph):
            for target in sorted(graph[name]):
                self._way(name, target, top - height[name], top - height[target])
        self._order()
        self.x = self._columns()
        self.y = {name: STEP * k for k, layer in enumerate(self.layers) for name in layer}
        self.width = max(self.x[name] + self.widths[name] / 2 for name in self.x)
        self.height = STEP * top + HEIGHT

    def curve(self, name: str, target: str) -> str:
        """The path of an arrow from box to box, through its lanes; ends are spread over the sides of the boxes."""
        way = self.ways[name, target]
        out, into = (sorted(side, key=lambda other: self.x[other]) for side in (self.down[name], self.up[target]))
        start = self.x[name] + _spread(out.index(way[1]), len(out), self.widths[name])
        end = self.x[target] + _spread(into.index(way[-2]), len(into), self.widths[target])
        points = [(start, self.y[name] + HEIGHT)]
        upright = [True]
        for lane in way[1:-1]:
            past = self._past(lane)
            points += past
            upright += [len(past) > 1] * len(past)
        points.append((end, self.y[target]))
        upright.append(True)
        leans = [0.0 if stands else _lean(points[k - 1], points[k + 1]) for k, stands in enumerate(upright)]
        path = f"M{start:.0f} {points[0][1]:.0f}"
        for ((x1, y1), lean1), ((x2, y2), lean2) in pairwise(zip(points, leans, strict=True)):
            part = 0.45 * (y2 - y1)
            path += (
                f"C{x1 + lean1 * part:.0f} {y1 + part:.0f} {x2 - lean2 * part:.0f} {y2 - part:.0f} {x2:.0f} {y2:.0f}"
            )
        return path

    def _past(self, lane: str) -> list[Point]:
        """Where an arrow passes a layer: upright beside a box that is near, else through a point."""
        layer = next(layer for layer in self.layers if lane in layer)
        near = min(abs(self.x[box] - self.x[lane]) - self.widths[box] / 2 for box in layer if self.widths[box])
        x, y = self.x[lane], self.y[lane]
        return [(x, y), (x, y + HEIGHT)] if near < 2 * LANE else [(x, y + HEIGHT / 2)]

    def _way(self, name: str, target: str, above: int, below: int) -> None:
        """An arrow through the layers between its ends, in each of which it gets a lane."""
        lanes = [f"{name}>{target}@{layer}" for layer in range(above + 1, below)]
        for layer, lane in enumerate(lanes, start=above + 1):
            self.layers[layer].append(lane)
            self.widths[lane] = 0.0
        self.ways[name, target] = [name, *lanes, target]
        for one, other in pairwise(self.ways[name, target]):
            self.down.setdefault(one, set()).add(other)
            self.up.setdefault(other, set()).add(one)

    def _order(self) -> None:
        """Sort every layer by its neighbours in the next, up and down in turn; keep the order with fewest crossings."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(SWEEPS):
            neighbours = self.down if sweep % 2 else self.up
            for layer in reversed(self.layers) if sweep % 2 else self.layers:
                at = self._positions()
                layer.sort(key=lambda name: _mean([at[n] for n in neighbours.get(name, ())], at[name]))
            self._swap_neighbours()
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _swap_neighbours(self) -> None:
        for number, layer in enumerate(self.layers):
            for k in range(len(layer) - 1):
                before = self._crossings(number)
                layer[k], layer[k + 1] = layer[k + 1], layer[k]
                if self._crossings(number) >= before:
                    layer[k], layer[k + 1] = layer[k + 1], layer[k]

    def _positions(self) -> dict[str, float]:
        return {name: (k + 0.5) / len(layer) for layer in self.layers for k, name in enumerate(layer)}

    def _crossings(self, near: int | None = None) -> int:
        """Pairs of arrows that cross, of all or of those that touch a layer."""
        count = 0
        for number, (upper, lower) in enumerate(pairwise(self.layers)):
            if near is None or near in (number, number + 1):
                at = {name: k for k, name in enumerate(lower)}
                ends = [(k, at[n]) for k, name in enumerate(upper) for n in self.down.get(name, ())]
                count += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(ends, 2))
        return count

    def _columns(self) -> dict[str, float]:
        """Each at the mean of its neighbours, as far as the others in its layer give way."""
        x: dict[str, float] = {}
        for layer in self.layers:
            x |= zip(layer, self._apart(layer, [0.0] * len(layer)), strict=True)
        for sweep in range(4 * SWEEPS):
            for layer in reversed(self.layers) if sweep % 2 else self.layers:
                wanted = []
                for name in layer:
                    sides = [_mean([x[n] for n in side.get(name, ())], x[name]) for side in (self.up, self.down)]
                    wanted.append(sum(sides) / 2)
                x |= zip(layer, self._apart(layer, wanted), strict=True)
        left = min(x[name] - self.widths[name] / 2 for name in x)
        return {name: at - left for name, at in x.items()}

    def _apart(self, layer: list[str], wanted: list[float]) -> list[float]:
        """The places nearest to `wanted` that keep order and distance (isotonic regression)."""
        offsets = [0.0]
        for one, other in pairwise(layer):
            gap = LANE if 0.0 in (self.widths[one], self.widths[other]) else GAP
            offsets.append(offsets[-1] + (self.widths[one] + self.widths[other]) / 2 + gap)
        blocks: list[tuple[float, float, int]] = []  # mean, weight, members
        for name, want, offset in zip(layer, wanted, offsets, strict=True):
            mean, weight, members = want - offset, 1.0 if self.widths[name] else 3.0, 1
            while blocks and blocks[-1][0] > mean:
                above, pull, more = blocks.pop()
                mean = (mean * weight + above * pull) / (weight + pull)
                weight, members = weight + pull, members + more
            blocks.append((mean, weight, members))
        means = [mean for mean, _, members in blocks for _ in range(members)]
        return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _mean(values: list[float], otherwise: float) -> float:
    """Exact, so that it does not depend on the order of a set."""
    return fsum(values) / len(values) if values else otherwise


def _lean(before: Point, after: Point) -> float:
    """Pixels to the side for a pixel down."""
    return (after[0] - before[0]) / (after[1] - before[1])


def _spread(number: int, count: int, width: float) -> float:
    return (number - (count - 1) / 2) * min(18.0, (width - 24) / count)

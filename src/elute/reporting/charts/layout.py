"""Where the nodes of a graph go: near each other where links are strong, components side by side.

Each component is laid out by stress majorisation (Gansner, Koren and North 2004) from a classical scaling of its path
lengths, which needs no random start: the same log gives the same picture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from elute.reporting.charts.graph import GraphLinks

Floats = NDArray[np.float64]

_STEPS = 120
_MARGIN = 1.1
_WIDE = 2.2
"""Width over height of the picture."""


def place_nodes(nodes: int, links: GraphLinks) -> Floats:
    """x and y of every node, y upwards; about one unit between neighbours."""
    if nodes == 0:
        return np.zeros((0, 2))
    length = _compute_lengths(links)
    ends = (links.a, links.b)
    near = csr_array(coo_array((length, ends), shape=(nodes, nodes)))
    label = connected_components(near, directed=False)[1]
    parts = [np.flatnonzero(label == part) for part in range(int(label.max()) + 1)]
    parts.sort(key=lambda part: (-len(part), part[0]))
    inside = [_lay_out_component(near[part][:, part]) for part in parts]
    spots = _shelve([np.ptp(xy, axis=0) + _MARGIN for xy in inside])
    out = np.empty((nodes, 2))
    for part, xy, spot in zip(parts, inside, spots, strict=True):
        out[part] = xy - xy.min(axis=0) + spot
    out[:, 1] = -out[:, 1]
    return out


def _compute_lengths(links: GraphLinks) -> Floats:
    """From 1 for the strongest link to 2 for one a hundredfold weaker, and so on."""
    if len(links.items) == 0:
        return np.zeros(0)
    return np.asarray(1.0 + np.log(links.items.max() / links.items) / np.log(100.0))


def _lay_out_component(near: csr_array) -> Floats:
    """One component, longer than high, its first node on the left."""
    n = near.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    distance = shortest_path(near, directed=False)
    xy = _majorise_stress(distance, _scale_classically(distance))
    xy -= xy.mean(axis=0)
    xy = xy @ np.linalg.svd(xy, full_matrices=False)[2].T
    for axis in (0, 1):
        if xy[0, axis] > 0:
            xy[:, axis] = -xy[:, axis]
    return np.asarray(xy)


def _scale_classically(distance: Floats) -> Floats:
    """Classical scaling: the two leading directions of the doubly centred squared distances."""
    n = len(distance)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ distance**2 @ centre)
    xy = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    spread = np.stack([np.cos(np.arange(n)), np.sin(np.arange(n))], axis=1)
    return np.asarray(xy + 1e-3 * spread)


def _majorise_stress(distance: Floats, xy: Floats) -> Floats:
    """Majorise Σ (|xᵢ - xⱼ| - dᵢⱼ)²/dᵢⱼ²."""
    weight = np.zeros_like(distance)
    off = distance > 0
    weight[off] = distance[off] ** -2.0
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_STEPS):
        apart = np.linalg.norm(xy[:, None] - xy[None], axis=2)
        pull = np.where(apart > 1e-9, weight * distance / np.maximum(apart, 1e-9), 0.0)
        xy = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ xy)
    return xy


def _shelve(boxes: list[Floats]) -> list[Floats]:
    """Corners of boxes on shelves, from the left and downwards."""
    wide = max(max(float(box[0]) for box in boxes), float(np.sqrt(_WIDE * sum(box[0] * box[1] for box in boxes))))
    spots, x, y, high = [], 0.0, 0.0, 0.0
    for box in boxes:
        if x > 0 and x + box[0] > wide * 1.001:
            x, y, high = 0.0, y + high, 0.0
        spots.append(np.array([x, y]))
        x, high = x + float(box[0]), max(high, float(box[1]))
    return spots
